"""The environment of programs under test: without the settings for Python or the tool from the shell of the tests."""

import signal
from collections.abc import Mapping
from pathlib import Path

# Where Python and its modules are, and the allocator that a tox environment chose.
_KEPT = frozenset({"PYTHONHOME", "PYTHONMALLOC", "PYTHONPATH"})


def is_steering(name: str) -> bool:
    """Return whether the variable `name` changes the behaviour of a program or of the tool.

    Such as PYTHONDONTWRITEBYTECODE and PYTHONUNBUFFERED, which containers often set: a program's output, and its
    timing, would not be what users see.
    """
    return name.startswith(("PYTHON", "REPLAYDBG_")) and name not in _KEPT


def without_steering(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without the variables that change behaviour."""
    return {name: value for name, value in environment.items() if not is_steering(name)}


def key_beside(place: Path) -> dict[str, str]:
    """Return the variables by which replaydbg keeps its key below `place`, where a replay finds it with another home.

    Recordings may have secrets, which are encrypted for the key of whoever records.
    """
    return {"XDG_DATA_HOME": str(place / "data")}


def restore_signals() -> None:
    """Restore the default actions of SIGINT and SIGHUP: a shell ignores SIGINT in background jobs.

    `nohup` ignores SIGHUP. Programs under test inherit ignored signals, and several of them end by these.
    """
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, default)
