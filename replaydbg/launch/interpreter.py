"""The start of the program's interpreter: its options, its environment, and what it inherits."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Mapping

from replaydbg.classes import NamedTuple
from replaydbg.config import ALWAYS_OF_OURS, ALWAYS_VARIABLE, TEST_PREFIX
from replaydbg.errors import UsageError
from replaydbg.launch.command_line import WITH_VALUE
from replaydbg.launch.command_line import leading_options as leading_options
from replaydbg.launch.quiet_start import as_given

BOOTSTRAP = (
    "import _imp;from _frozen_importlib import ModuleSpec as S;"
    "_imp.create_dynamic(S('replaydbg.native._core',None,origin={core!a})).boot({boot!a})"
)
"""The command that loads the core without entering it into `sys.modules`; it never returns."""

EMULATED = frozenset("SEIRP")
"""Options that the core applies in place of the interpreter."""


class Option(NamedTuple):
    """One option of the interpreter."""

    name: str
    """Its letter, or the whole word of a long one; empty for a word that is not an option."""
    value: str | None
    """Its value; None for an option that takes none, or if it is missing. The word, if it is not an option."""


class Options(NamedTuple):
    """The interpreter's options, split into those that are passed on and those that the core applies."""

    passed: list[str]
    """Options for the bootstrap interpreter."""
    given: list[str]
    """Options as they were given: the beginning of the recording's `sys.orig_argv`."""
    site: bool
    """Whether `site` is imported (no -S)."""
    isolated: bool
    """Whether -I was given."""
    ignore_environment: bool
    """Whether -E or -I was given."""
    is_randomized: bool
    """Whether -R was given, which overrides a fixed hash seed."""
    safe_path: bool
    """Whether -P or -I was given."""
    warnings: list[str]
    """The values of -W."""


def parse_options(words: list[str]) -> list[Option]:
    """Return the options in `words`, which may contain clusters such as -BWerror."""
    found: list[Option] = []
    rest = iter(words)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            found.append(Option("", word))
            continue
        if word.startswith("--"):
            found.append(Option(word, next(rest, None) if word in WITH_VALUE else None))
            continue
        # A letter with a value takes the rest of the word, or the next word.
        end = min((index for index in map(word.find, "WX") if index > 0), default=len(word))
        found.extend(Option(letter, None) for letter in word[1:end])
        if end < len(word):
            found.append(Option(word[end], word[end + 1 :] or next(rest, None)))
    return found


def split_options(given: list[str]) -> Options:
    """Return the options to pass on.

    -S and -P are always passed: the core imports `site`, and nothing of the working directory is imported before it.
    -E, -I and -R are emulated, since they would ignore the hash seed too.
    """
    options = parse_options(given)
    letters = {option.name for option in options}
    isolated = "I" in letters
    return Options(
        passed=passed_words(options),
        given=given,
        site="S" not in letters,
        isolated=isolated,
        ignore_environment=isolated or "E" in letters,
        is_randomized="R" in letters,
        safe_path=isolated or "P" in letters,
        warnings=[option.value for option in options if option.name == "W" and option.value is not None],
    )


def passed_words(options: list[Option]) -> list[str]:
    """Return the words with which the bootstrap interpreter is started for the program's `options`."""
    words = ["-S", "-P"]
    for name, value in options:
        if name not in EMULATED:
            word = name if name.startswith("--") else f"-{name}"
            words += [word] if value is None else [word, value]
        elif name == "I":
            words.append("-s")
    return words


def has_safe_path(environment: Mapping[str, str], options: Options) -> bool:
    """Return whether the interpreter adds no entry of its own to the front of the program's `sys.path`."""
    return options.safe_path or (not options.ignore_environment and bool(environment.get("PYTHONSAFEPATH")))


def held_warnings(environment: Mapping[str, str], options: Options) -> list[str]:
    """Return the warning options, if one of them names a category of a module: then the core applies them.

    The interpreter imports that module at its start, before the core: its code would run unrecorded, and in a replay
    unfenced. An empty list: there is no such option, and all are passed on.
    """
    variable = "" if options.ignore_environment else environment.get("PYTHONWARNINGS", "")
    words = [*filter(None, variable.split(",")), *options.warnings]
    return words if any("." in (*word.split(":"), "", "")[2] for word in words) else []


def check_recordable(given: list[str], environment: Mapping[str, str]) -> None:
    """Raise UsageError for options with which the interpreter would not run the program, or would run more than it."""
    letters = {option.name for option in parse_options(given)}
    if "i" in letters:
        raise UsageError("Interactive mode (-i) cannot be recorded. Run the program without it.")
    if environment.get("PYTHONINSPECT") and not {"E", "I"} & letters:
        raise UsageError("Interactive mode (PYTHONINSPECT) cannot be recorded. Unset the variable.")
    for letter in "Vh?":
        if letter in letters:
            raise UsageError(f"With the option -{letter} Python runs no program, so there is nothing to record.")


def choose_hash_seed(environment: dict[str, str], options: Options) -> int:
    """Return the seed of string hashes: the one fixed by the environment, or a fresh random one (never 0)."""
    fixed = environment.get("PYTHONHASHSEED", "")
    if fixed.isdigit() and not options.ignore_environment and not options.is_randomized:
        return int(fixed)
    return int.from_bytes(os.urandom(4), "little") % 4294967294 + 1


def start_environment(environment: dict[str, str], options: Options, seed: int) -> dict[str, str]:
    """Return the environment for the bootstrap interpreter; the core restores the program's own."""
    env = dict(environment)
    if options.ignore_environment:
        env = {name: value for name, value in env.items() if not name.startswith("PYTHON")}
    if held_warnings(environment, options):
        env.pop("PYTHONWARNINGS", None)
    env["PYTHONHASHSEED"] = str(seed)
    return env


def own_environment() -> dict[str, str]:
    """Return the environment that we were given: without the LC_CTYPE that Python adds to it in the C locale.

    Orders of the tests are left out, too, and what `replaydbg always` adds for our own processes.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(TEST_PREFIX)}
    if environment.get(ALWAYS_VARIABLE) == ALWAYS_OF_OURS:
        del environment[ALWAYS_VARIABLE]
    is_of_python = environment.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8")
    if is_of_python and not any(entry.startswith(b"LC_CTYPE=") for entry in _first_environment()):
        del environment["LC_CTYPE"]
    return as_given(environment)


def _first_environment() -> list[bytes]:
    """Return the environment that this process was started with."""
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except OSError:
        from replaydbg.native import _core  # only for systems without /proc

        return list(_core.first_environment())


def command_line(executable: str, passed: list[str], core: str, boot: str | int) -> list[str]:
    """Return the command line that starts the interpreter with the core in it; `boot` is a path or a descriptor."""
    return [executable, *passed, "-c", BOOTSTRAP.format(core=core, boot=boot)]


def stream_kind(fd: int) -> str:
    """Return the kind of a standard stream: `tty`, `pipe`, `file`, `null`, `socket` or `closed`."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return "closed"
    if os.isatty(fd):
        return "tty"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISREG(mode):
        return "file"
    return "socket" if stat.S_ISSOCK(mode) else "null"


def input_offset(fd: int) -> int | None:
    """Return the offset at which a program begins to read its standard input; None: it is not a regular file."""
    try:
        return os.lseek(fd, 0, os.SEEK_CUR) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None


def stream_identity(fd: int) -> str:
    """Return what identifies a stream in all processes that have it, as the core does; empty: it is closed."""
    try:
        found = os.fstat(fd)
    except OSError:
        return ""
    return str(found.st_ino) if stat.S_ISSOCK(found.st_mode) else f"{found.st_dev}:{found.st_ino}"


def inherited_fds() -> list[int]:
    """Return the open descriptors above 2 that a started program inherits."""
    found: list[int] = []
    for fd in _open_fds():
        try:
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            continue  # the descriptor of the listing itself
    return sorted(found)


def _open_fds() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    except OSError:
        from replaydbg.native import _core  # only for systems without /proc

        return list(_core.descriptors())


def ignored_signals() -> dict[str, str]:
    """Return the signals that were ignored when this process started; Python itself ignores the first two."""
    own = (signal.SIGPIPE, signal.SIGXFSZ)
    numbers = [number for number in signal.valid_signals() if number not in own]
    return {str(int(number)): "ignored" for number in numbers if signal.getsignal(number) is signal.SIG_IGN}


def this_python() -> dict[str, object]:
    """Return the description of this interpreter for a recording's header."""
    return {
        "version": sys.version.split()[0],
        "hexversion": sys.hexversion,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "cache_tag": sys.implementation.cache_tag,
        "soabi": soabi(),
    }


def soabi() -> str:
    """Return this interpreter's SOABI, such as `cpython-311-x86_64-linux-gnu` (sysconfig would cost 6 ms)."""
    import _imp  # a module of the interpreter itself, needed only here

    return _imp.extension_suffixes()[0].removeprefix(".").removesuffix(".so")
