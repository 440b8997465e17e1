"""What programs under test inherit: not what the shell that started the tests has set for Python or for the tool."""

import signal
from collections.abc import Mapping

# Where Python and its modules lie, and the allocator that a tox environment chose.
_KEPT = frozenset({"PYTHONHOME", "PYTHONMALLOC", "PYTHONPATH"})


def is_steering(name: str) -> bool:
    """Whether the variable `name` makes a program or the tool behave in another way than by default.

    Such as PYTHONDONTWRITEBYTECODE and PYTHONUNBUFFERED, which containers often set: what a program writes, and when,
    would not be what users see.
    """
    return name.startswith(("PYTHON", "REPLAYDBG_")) and name not in _KEPT


def without_steering(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without the variables that steer."""
    return {name: value for name, value in environment.items() if not is_steering(name)}


def restore_signals() -> None:
    """Give SIGINT and SIGHUP their default actions again: a shell ignores SIGINT in what it starts in the background.

    `nohup` ignores SIGHUP. Programs under test inherit what is ignored, and several of them end by these signals.
    """
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, default)
