"""`replaydbg debug`: a prompt that goes anywhere in a recording, forwards and backwards."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from platformdirs import user_state_path

from replaydbg.cli.common.opening import opened
from replaydbg.cli.common.output import add_recording
from replaydbg.cli.common.standard_streams import is_interactive
from replaydbg.commands import Prompt
from replaydbg.errors import UsageError
from replaydbg.prompt.line_reader import LineReader
from replaydbg.prompt.terminal import AtOnce, Interrupts


class _Script(argparse.Action):
    """Collects -x and -c in the order in which they were given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        namespace.scripts = [*namespace.scripts, (self.dest == "file", values)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.set_defaults(scripts=[])
    parser.add_argument("-x", dest="file", metavar="FILE", action=_Script, help="run the commands in FILE first")
    parser.add_argument("-c", dest="command", metavar="COMMAND", action=_Script, help="run a command first; repeatable")
    parser.add_argument(
        "--at",
        metavar="MOMENT",
        help="start at this moment, such as 120:35 or @end (default: the failure, else the end)",
    )
    parser.add_argument("--batch", action="store_true", help="exit after -x and -c")
    parser.add_argument(
        "--current-source", action="store_true", help="run today's source files instead of the recorded ones"
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="memory limit of the debugger's processes, such as 2G; more makes seeks faster"
    )
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="show no progress, and no notice about a recording that you did not make",
    )


def run(args: argparse.Namespace) -> int:
    """Open the recording and run the prompt; in batch mode the exit code is 1 if the last command failed."""
    scripts = [(text if not is_file else _read(text)) for is_file, text in args.scripts]
    # In batch mode a Ctrl-C cancels the whole script, not just the command that runs.
    is_typed = not args.batch and is_interactive()
    interrupts = Interrupts() if is_typed else AtOnce()
    with opened(
        args.recording,
        current_source=args.current_source,
        quiet=args.quiet,
        memory=args.memory,
        interrupts=interrupts,
    ) as view:
        prompt = Prompt(view.session, view.screen, interrupts, view=view)
        prompt.open()
        if args.at is not None:
            prompt.run([f"seek {args.at}"])
        for text in scripts:
            prompt.run(text.splitlines())
        if not args.batch and not prompt.is_over:
            _interact(prompt, interrupts)
        is_batch = args.batch or not sys.stdin.isatty()
        return 1 if is_batch and prompt.has_failed else 0


def _interact(prompt: Prompt, interrupts: Interrupts | AtOnce) -> None:
    if isinstance(interrupts, AtOnce):
        for line in sys.stdin:
            prompt.do(line)
            if prompt.is_over:
                return
        return
    lines = LineReader(prompt, user_state_path("replaydbg") / "history", interrupts)
    try:
        with interrupts.prompting():
            prompt.interact(lambda: interrupts.read(lines.read))
    finally:
        lines.save()


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The commands in {file!r} cannot be read: {error}.") from None
