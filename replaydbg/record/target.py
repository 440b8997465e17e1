"""Find the program to record: a script, a module, a command, a directory or archive, or a console script."""

from __future__ import annotations

import os
import stat

from replaydbg.classes import NamedTuple
from replaydbg.errors import UsageError

SCRIPT, MODULE, COMMAND, DIRECTORY = "script", "module", "command", "directory"


class Target(NamedTuple):
    """A program in the form in which the interpreter runs it."""

    kind: str
    """`script`, `module`, `command` or `directory` (a zip archive too)."""
    what: str
    """The file's absolute path, the module's name, or the code."""
    argv: list[str]
    """The initial `sys.argv`."""
    options: list[str]
    """The interpreter's command line after its own options: the end of `sys.orig_argv`."""
    path0: str | None
    """The first entry of `sys.path` set by the interpreter; None if it determines that by itself."""


def find_target(argv: list[str], *, takes_commands: bool = True) -> Target:
    """Return the program that `argv` names (`prog.py a`, `-m module a`, `-c code a`, `dir a`, `console-script a`).

    Without `takes_commands` a console script has to be given by its path.

    Raises UsageError for one that does not exist or cannot be recorded.
    """
    if not argv:
        raise UsageError("Nothing to record: name a script, -m module, -c code, or a console script.")
    first = argv[0]
    if first in ("-m", "-c"):
        if len(argv) < 2:
            raise UsageError(f"The option {first} needs an argument.")
        cwd = "" if first == "-c" else _cwd()
        kind = MODULE if first == "-m" else COMMAND
        # -m finds the file by itself; until then argv[0] is "-m", as in a plain interpreter.
        return Target(kind, argv[1], [first, *argv[2:]], argv, cwd)
    if first.startswith("-"):
        raise UsageError(
            f"{first!r} is not something to record: name a script, -m module, -c code, or a console script."
        )
    return _file_target(argv, takes_commands=takes_commands)


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is not loaded when a recording starts
    except OSError:
        return ""


def _file_target(argv: list[str], *, takes_commands: bool) -> Target:
    first, *rest = argv
    if not os.path.exists(first) and not takes_commands:  # noqa: PTH110
        raise UsageError(f"No file {first!r} to record.")
    if not os.path.exists(first):  # noqa: PTH110
        # Imported here: it takes 2 ms, which only a console script needs.
        import shutil

        found = None if os.sep in first else shutil.which(first)
        if found is None:
            raise UsageError(f"No file and no command {first!r} to record.")
        first = found
    path = _absolute(first)
    _check_readable_twice(first, path)
    if os.path.isdir(path) or _is_archive(first, path):  # noqa: PTH112
        return Target(DIRECTORY, path, [first, *rest], [first, *rest], None)
    return Target(SCRIPT, path, [first, *rest], [first, *rest], os.path.dirname(os.path.realpath(path)))  # noqa: PTH120


def _absolute(path: str) -> str:
    """Return the absolute path as the interpreter does. It leaves `..` in it: after a link that is another place."""
    return os.getcwd() if path == "." else os.path.join(os.getcwd(), path)  # noqa: PTH109,PTH118


def _check_readable_twice(given: str, path: str) -> None:
    """Refuse a pipe, socket or device: a source is read before the program starts, and again when it is recorded."""
    mode = os.stat(path).st_mode  # noqa: PTH116
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise UsageError(
        f"Cannot record a program from {kind} ({given!r}). The program was not started. Save it to a file and record "
        "that file."
    )


def _is_archive(given: str, path: str) -> bool:
    """Return whether a file is a zip archive. Raises UsageError for a binary."""
    with open(path, "rb") as file:  # noqa: PTH123
        begin = file.read(4)
        if begin == b"\x7fELF":
            raise UsageError(f"{given!r} is not a Python script: only Python programs can be recorded.")
        if begin.startswith(b"#!"):
            file.seek(0)
            file.readline()
            begin = file.read(4)
        return begin == b"PK\x03\x04"
