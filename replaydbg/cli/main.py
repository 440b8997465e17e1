"""The `replaydbg` command: find the command that is meant, and import only that one.

Every recorded program pays for what this module imports, so it imports next to nothing: `record` gets to the program
within a millisecond.
"""

from __future__ import annotations

import gc
import sys

from replaydbg.errors import Cancelled, Divergence, ReplaydbgError, UsageError
from replaydbg.launch.closed_stderr import discard_messages
from replaydbg.launch.interruption import INTERRUPTIONS, interruptible, number_of
from replaydbg.launch.quiet_start import start_quietly
from replaydbg.launch.terminal_width import terminal_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Protocol, TextIO

    from replaydbg.cli.common.option_parser import OptionParser

    class CommandModule(Protocol):
        """The interface of a command's module."""

        def add_arguments(self, parser: argparse.ArgumentParser) -> None:
            """Declare the command's options; words left over by `split_words`, if it exists, are in `args.program`."""

        def run(self, args: argparse.Namespace) -> int:
            """Run the command and return the exit code."""


class Command:
    """One row of the table of commands (a plain class: each of dataclasses and typing takes milliseconds to import)."""

    __slots__ = ("folder", "replays", "text")

    def __init__(self, folder: str, text: str, *, replays: bool = False) -> None:
        self.folder = folder
        """The sub-package that holds the command's module."""
        self.text = text
        """One line of help."""
        self.replays = replays
        """Whether the command replays, always or sometimes: such commands take `--no-fence`."""


COMMANDS = {
    "record": Command("running", "run a program and record it"),
    "replay": Command("running", "replay a recording exactly, and stop at the first difference", replays=True),
    "resume": Command(
        "running", "replay a recording of a killed program, then continue the program live", replays=True
    ),
    "futures": Command(
        "running",
        "let a recorded program go on from a moment many times, its threads interleaved in other ways",
        replays=True,
    ),
    "torture": Command(
        "running", "record a program once, then let each of its calls fail: no disk space, errors, resets", replays=True
    ),
    "jupyter": Command(
        "running", "install a Jupyter kernel that is recorded, and that answers questions about earlier cells"
    ),
    "hunt": Command(
        "running", "record a flaky program until it fails and until it passes, and keep one of each", replays=True
    ),
    "check": Command("running", "test whether today's code still fails on the inputs of a recording", replays=True),
    "demo": Command("running", "record a flaky program until it fails, and replay the failure", replays=True),
    "ls": Command("recordings", "list the recordings in the store"),
    "tag": Command("recordings", "add or remove tags of a recording, by which ls finds it"),
    "info": Command("recordings", "show what was recorded, and how it ended"),
    "ps": Command("recordings", "list the processes that were recorded together"),
    "channels": Command("recordings", "list the channels between processes that were recorded together"),
    "sender": Command("recordings", "show which process and line sent the bytes that an event received"),
    "receiver": Command("recordings", "show which process and line received the bytes that an event sent"),
    "cut": Command("recordings", "show a consistent global state of a group of processes", replays=True),
    "order": Command("recordings", "show which of two events of a group came first, or that they are concurrent"),
    "cuts": Command("recordings", "compare checkpoint policies over processes that were recorded together"),
    "stable": Command(
        "recordings", "find when a group deadlocked or terminated, or when a condition became true", replays=True
    ),
    "resources": Command(
        "recordings",
        "show the open files, sockets, locks, timers and children at a moment, and what was not closed",
        replays=True,
    ),
    "debug": Command("exploring", "debug a recording at a prompt, forwards and backwards", replays=True),
    "tui": Command("exploring", "debug a recording in the terminal UI, forwards and backwards", replays=True),
    "dap": Command(
        "exploring", "debug recordings in an editor, forwards and backwards (Debug Adapter Protocol)", replays=True
    ),
    "mcp": Command("exploring", "answer an agent's questions about recordings (Model Context Protocol)", replays=True),
    "seek": Command("exploring", "show the stack, threads and variables at a moment", replays=True),
    "requests": Command("exploring", "list the requests to a recorded web application, and which of them failed"),
    "why": Command("exploring", "show which line last wrote a value, and what the value came from", replays=True),
    "watch": Command("exploring", "show every value of an expression, and the lines that changed it", replays=True),
    "log": Command("exploring", "print an expression every time a line ran (a retroactive print)", replays=True),
    "exceptions": Command(
        "exploring", "list the exceptions that a run raised, and the lines that raised them", replays=True
    ),
    "heap": Command(
        "exploring", "show the objects in memory at a moment, what holds them, and what grows", replays=True
    ),
    "diff": Command("exploring", "show what differs between two moments or two recordings", replays=True),
    "bisect": Command("bisecting", "find the moment, the input or the commit that made a program fail", replays=True),
    "ci": Command(
        "bisecting", "test failing recordings at a range of commits: which commit fixed or broke which", replays=True
    ),
    "snapshots": Command("recordings", "list the heap snapshots in a recording"),
    "export": Command(
        "exploring",
        "save an object as it was at a moment, a page about the failure, or a test, to a file",
        replays=True,
    ),
    "events": Command("recordings", "show the events of a recording"),
    "holds": Command("exploring", "show when an expression was true, over the whole run", replays=True),
    "hits": Command("exploring", "count how often each line ran", replays=True),
    "verify": Command("recordings", "check a recording for damage, without running anything"),
    "redact": Command("running", "copy a recording with pseudonyms in the place of its secrets", replays=True),
    "sign": Command("machine", "sign a recording with an SSH key; whoever opens it finds out who signed it"),
    "pack": Command("recordings", "copy a recording, or a group of processes, into one file that needs no other files"),
    "unpack": Command("recordings", "restore a group of processes from a file that pack wrote"),
    "push": Command("remote", "send recordings to a bucket, a server or another directory"),
    "pull": Command("remote", "fetch a recording that push has sent"),
    "rm": Command("recordings", "remove recordings from the store"),
    "gc": Command(
        "recordings", "delete shared blocks that no recording uses; with --recordings, recordings that no rule keeps"
    ),
    "key": Command("machine", "print your public key, by which others can encrypt recordings for you"),
    "always": Command("machine", "record each run of a virtual environment's interpreter, and keep the last ones"),
    "doctor": Command("machine", "check whether this machine can record and replay", replays=True),
    "config": Command("machine", "show each setting and where its value comes from"),
    "completion": Command("machine", "print a shell completion script"),
}
"""The commands, each a module of its name with `add_arguments(parser)` and `run(args)`, in the order of `--help`."""

_NEED_CORE = (
    "record replay resume futures hunt check demo stable debug seek why watch log exceptions bisect ci holds hits "
    "redact"
)
"""Those that always record or replay. Where that is not possible, some of the others still have something to say."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name) and return the exit code. Never raises our errors."""
    words = list(sys.argv[1:] if argv is None else argv)
    discard_messages()
    # A recording can contain any character, and a terminal may support few.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with interruptible():
        try:
            code = _do(words, is_process=argv is None)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except Cancelled:
            return _end_by(KeyboardInterrupt())
        except ReplaydbgError as error:
            if "--json" in words:
                print_error(error)
            return _complain(error)
        except INTERRUPTIONS as interruption:
            return _end_by(interruption)
        except BrokenPipeError:
            return _reader_gone()
        except OSError as error:
            return _refuse(error)


def _end_by(interruption: BaseException) -> int:
    if "replaydbg.remote.fetched_files" in sys.modules:  # otherwise nothing was fetched
        sys.modules["replaydbg.remote.fetched_files"].remove_fetched()
    # Imported here: it is seldom needed.
    from replaydbg.launch.endings import end_like

    return end_like(-number_of(interruption))


def _do(words: list[str], *, is_process: bool) -> int:
    """Run the command; `is_process`: it is what this process was started for."""
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version", "version"):
        # Imported here: nothing else needs it.
        from replaydbg import __version__

        print(f"replaydbg {__version__}")
        return 0
    name, rest = _command(words)
    if name in _NEED_CORE.split():
        # Imported here: such a command needs it anyway.
        from replaydbg.native import check_core

        check_core()
    if is_process and name in ("record", "replay"):
        # This process only starts the program, and reads or writes one file. Garbage collections, above all the one at
        # exit, find nothing and take 5 ms.
        gc.disable()
    if name == "record" and is_process:
        # Before most of its imports: PYTHONVERBOSE would make each of them print.
        from replaydbg.launch.interpreter import own_environment

        start_quietly(own_environment)
    code = _run(name, rest)
    if not gc.isenabled():
        gc.freeze()
    return code


def _run(name: str, words: list[str]) -> int:
    command = command_module(name)
    args = _plain_arguments(name, words, command) or _arguments(name, words, command)
    try:
        return command.run(args)
    except Cancelled:
        raise  # a Ctrl-C is not an error to report
    except ReplaydbgError as error:
        if getattr(args, "json", False):
            print_error(error)
        return _complain(error)


def print_error(error: ReplaydbgError) -> None:
    """Print an error as JSON."""
    from replaydbg.cli.common.fetched_names import json_with_addresses
    from replaydbg.cli.common.schema import SCHEMA_VERSION

    print(json_with_addresses({"schema_version": SCHEMA_VERSION, "error": error.as_dict()}))


def _plain_arguments(name: str, words: list[str], command: CommandModule) -> argparse.Namespace | None:
    """Return the arguments of an ordinary `record` or `replay`, without argparse; None: argparse is needed."""
    if name not in ("record", "replay"):
        return None
    # Imported here: other commands take longer anyway.
    from replaydbg.cli.common.plain_words import PlainParser

    parser = PlainParser()
    command.add_arguments(parser)  # type: ignore[arg-type]
    found = parser.parse(words, has_program=name == "record")
    if found is not None and COMMANDS[name].replays:
        from replaydbg.cli.common.no_fence import without_fence

        without_fence([])  # prints a warning if a variable switches the fence off
    return found  # type: ignore[return-value]


def _arguments(name: str, words: list[str], command: CommandModule) -> argparse.Namespace:
    # Imported here: it takes 5 ms, which `--version` need not pay.
    import argparse

    from replaydbg.cli.common.option_parser import OptionParser

    row = COMMANDS[name]
    parser = OptionParser(
        prog=f"replaydbg {name}",
        description=f"replaydbg {name}: {row.text}.",
        # argparse would ask shutil for the width at each option: that imports bz2 and lzma, 3 ms for every recording.
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=terminal_width() - 2),
    )
    OptionParser.report = print_error if "--json" in words else None
    parser.usage_code = getattr(command, "USAGE_CODE", parser.usage_code)
    command.add_arguments(parser)
    if row.replays:
        # Imported here: `record` does not need it.
        from replaydbg.cli.common.no_fence import add_no_fence, without_fence

        add_no_fence(parser)
    # `record` takes a command line that has options of its own: argparse must not see those.
    split_words = getattr(command, "split_words", None)
    own, program = split_words(parser, words) if split_words is not None else (words, [])
    if row.replays:
        own = without_fence(own)
    return _parsed(parser, own, argparse.Namespace(program=program))


def _parsed(parser: OptionParser, words: list[str], into: argparse.Namespace) -> argparse.Namespace:
    try:
        return parser.parse_anywhere(words, into)
    except SystemExit:
        if sys.stdout is not None:
            sys.stdout.flush()  # the help; at exit, a failure would have no message
        raise


def command_module(name: str) -> CommandModule:
    """Import and return the module of a command."""
    # Imported here, as above.
    import importlib

    module: CommandModule = importlib.import_module(f"replaydbg.cli.{COMMANDS[name].folder}.{name}")
    return module


def _command(words: list[str]) -> tuple[str, list[str]]:
    """Return the command meant and its words: a bare recording is shown, a bare program is recorded."""
    first = words[0]
    if first in COMMANDS:
        return first, words[1:]
    if first in ("-m", "-c", "--"):
        return "record", words
    if first.startswith("-"):
        raise UsageError(f"replaydbg has no option {first!r}. `replaydbg --help` lists the commands.")
    if (
        first == "latest"
        or first.endswith((".rdbg", ".rdbg-live", ".rdbg-live/", ".rdbgs", ".rdbgs/"))
        or _is_run(first)
    ):
        # Imported here: a recorded program does not pay for it.
        from replaydbg.cli.common.standard_streams import is_interactive

        return ("tui" if len(words) == 1 and is_interactive() else "info"), words
    # Imported here: only a bare word has to be looked up.
    import os

    if os.path.exists(first):  # noqa: PTH110 - pathlib costs 4 ms on the way to every recorded program
        return "record", words
    # Imported here: only a word that means nothing needs it.
    from replaydbg.events.nearest_words import nearest

    raise UsageError(
        f"{first!r} is not a command, a recording, or a program in this directory{nearest(first, COMMANDS)}. "
        "`replaydbg --help` lists the commands."
    )


def _is_run(word: str) -> bool:
    name, _, process = word.partition("/")
    return name.startswith("run-") and name[4:].isdecimal() and (not process or process.isdecimal())


def _overview() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {each.text}" for name, each in COMMANDS.items())
    return (
        "usage: replaydbg COMMAND ...\n"
        "       replaydbg prog.py ...    the same as: replaydbg record prog.py ...\n"
        "       replaydbg RECORDING      the same as: replaydbg tui RECORDING, or info where there is no terminal\n\n"
        "Record a Python program once, then replay it exactly, step backwards, and ask which line wrote a value.\n\n"
        f"commands:\n{commands}\n\n"
        "A RECORDING is a path, a name such as run-12, or latest. See `replaydbg COMMAND --help`."
    )


def _complain(error: ReplaydbgError) -> int:
    # Imported here: a successful command has no error to print.
    from replaydbg.cli.common.fetched_names import with_addresses
    from replaydbg.events.show import printable

    text = with_addresses(str(error) if isinstance(error, Divergence) else f"replaydbg: {error}")
    try:
        # Names in it may come from a recording, and an escape sequence among them would reach the terminal.
        print("\n".join(printable(line) for line in text.split("\n")), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)  # the exit code is all that is left
    return error.exit_code


def _refuse(error: OSError) -> int:
    """Report an operation that the system refused: often to write our output, what is left of which is discarded."""
    # Imported here: it is seldom needed.
    from replaydbg.cli.common.refused import refused

    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
    return _complain(refused(error))


def _reader_gone() -> int:
    """Ignore a closed pipe: the reader has seen enough, which is no failure."""
    _discard(sys.stdout)
    return 0


def _discard(stream: TextIO) -> None:
    """Discard what is left in a stream: the flush at exit must neither fail nor change the exit code."""
    # Imported here: it is seldom needed.
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
