"""When snapshots of the heap are taken while a program is recorded."""

from __future__ import annotations

from typing import Any, NamedTuple

from replaydbg.errors import UsageError


# Recording loads this: a named tuple, see config.py.
class SnapshotOrders(NamedTuple):
    """When one is taken, besides where the program asks for it with `replaydbg.snapshot`."""

    every_events: int = 0
    """So many events apart; 0: not by events."""
    every_ns: int = 0
    """So many nanoseconds apart; 0: not by time."""
    at_exceptions: bool = False
    """Whether one is taken when an exception ends the program or a thread."""
    signal: int = 0
    """At this signal, at the next event; 0: at none."""
    share: float = 0.02
    """Those that are due by events or by time are left out where all would cost more than this share of the run."""
    checks: tuple[str, ...] = ()
    """Expressions that are to hold whenever one is taken, seen from the program's main module."""
    objects: int = 0
    """At most so many objects in one, which says so; 0: twenty million."""
    which_all: bool = False
    """Whether modules of the standard library and installed ones are looked at, too."""

    def as_boot(self) -> dict[str, Any]:
        """Return it as the core is told."""
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
    # Imported here: hardly anybody asks.
    import signal

    try:
        return int(signal.Signals["SIG" + name.upper().removeprefix("SIG")])
    except KeyError:
        raise UsageError(f"{name!r} is not a signal of this system.") from None
