"""Actions that reading a recording must never cause: starting processes, writing, connecting, unpickling, importing."""

import importlib
import os
import pkgutil
import sys
import tomllib  # noqa: F401 - compiles text when it is imported; see _import_all()
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, ClassVar

import replaydbg

_FORBIDDEN = (
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.startfile",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.chown",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.kill",
    "os.putenv",
    "shutil.",
    "tempfile.",
    "socket.",
    "pickle.",
    "marshal.load",
    "ctypes.",
    "pty.",
    "signal.pthread_kill",
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OURS = frozenset((*sys.stdlib_module_names, "replaydbg", "zstandard", "rich", "pygments", "platformdirs", "tests"))


# Entry points, and what runs in the program's process or in pytest's alone.
_NOT_READING = frozenset(("__main__", "demo", "native", "probe", "pytest_plugin"))


class _State:
    is_armed = False
    is_installed = False
    acts: ClassVar[list[str]] = []


def _is_forbidden(event: str, args: tuple[Any, ...]) -> bool:
    if event == "open":
        # A descriptor was opened before, which was seen; what is written to the null device goes nowhere.
        is_new = not isinstance(args[0], int) and args[0] != os.devnull
        return is_new and isinstance(args[2], int) and bool(args[2] & _WRITES)
    if event == "import":
        return args[0].partition(".")[0] not in _OURS
    if event == "exec":
        code = args[0]
        # Modules that are imported late have a file; code compiled from a text has none.
        return isinstance(code, CodeType) and code.co_filename.startswith("<") and "frozen" not in code.co_filename
    if event == "marshal.loads":
        return False  # this loads modules from their cached byte code; `exec` sees the result
    return event.startswith(_FORBIDDEN)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    # Audit hooks are permanent: there is no call that removes one.
    if _State.is_armed and _is_forbidden(event, args):
        _State.acts.append(f"{event} {args!r}"[:200])


def _import_all() -> None:
    """Import what the commands import when they need it: a named tuple compiles a text where its class is made."""
    for module in pkgutil.walk_packages(replaydbg.__path__, "replaydbg."):
        if not _NOT_READING.intersection(module.name.split(".")):
            importlib.import_module(module.name)


@contextmanager
def looking_away() -> Iterator[None]:
    """Suspend the checks while a target prepares its input."""
    was, _State.is_armed = _State.is_armed, False
    try:
        yield
    finally:
        _State.is_armed = was


@contextmanager
def watching() -> Iterator[list[str]]:
    """Return the list of forbidden actions of this process; it grows as they happen."""
    if not _State.is_installed:
        _import_all()
        sys.addaudithook(_hook)
        _State.is_installed = True
    _State.acts = []
    _State.is_armed = True
    try:
        yield _State.acts
    finally:
        _State.is_armed = False
