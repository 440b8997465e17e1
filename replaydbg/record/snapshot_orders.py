"""Orders for snapshots of the heap during a recording."""

from __future__ import annotations

from replaydbg.classes import NamedTuple
from replaydbg.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Recording loads this: a named tuple, see config.py.
class SnapshotOrders(NamedTuple):
    """When to take a snapshot, besides the program's own calls of `replaydbg.snapshot`."""

    every_events: int = 0
    """Number of events between snapshots; 0: not by events."""
    every_ns: int = 0
    """Nanoseconds between snapshots; 0: not by time."""
    at_exceptions: bool = False
    """Whether to take one when an exception ends the program or a thread."""
    signal: int = 0
    """The signal that requests one at the next event; 0: none."""
    share: float = 0.02
    """Maximum share of the run's time for snapshots by events or by time: beyond it they are skipped."""
    checks: tuple[str, ...] = ()
    """Expressions that must be true at each snapshot, evaluated in the program's main module."""
    objects: int = 0
    """Maximum number of objects in one, which notes the limit; 0: twenty million."""
    which_all: bool = False
    """Whether to include modules of the standard library and installed ones."""

    def as_boot(self) -> dict[str, Any]:
        """Return the fields for the core."""
        return {
            "every_events": self.every_events,
            "every_ns": self.every_ns,
            "at_exceptions": int(self.at_exceptions),
            "signal": self.signal,
            "share": int(self.share * 1e6),
            "all": int(self.which_all),
            **({"nodes": self.objects} if self.objects else {}),
            **({"checks": list(self.checks)} if self.checks else {}),
        }


NO_SNAPSHOTS = SnapshotOrders()


def parse_every(text: str) -> tuple[int, int]:
    """Return events and nanoseconds for `500`, `200ms` or `2s`. Raises UsageError."""
    for unit, length in (("ms", 10**6), ("s", 10**9)):
        if text.endswith(unit):
            number = text.removesuffix(unit)
            if number.isascii() and number.isdigit() and 0 < int(number) * length < 1 << 62:
                return 0, int(number) * length
    if text.isascii() and text.isdigit() and 0 < int(text) < 1 << 62:
        return int(text), 0
    raise UsageError(f"{text!r} is not a valid interval: give events (500) or time (200ms, 2s).")


def parse_signal(name: str) -> int:
    """Return the number of a signal such as `USR2`. Raises UsageError."""
    # Imported here: it is seldom needed.
    import signal

    try:
        return int(signal.Signals["SIG" + name.upper().removeprefix("SIG")])
    except KeyError:
        raise UsageError(f"{name!r} is not a signal of this system.") from None
