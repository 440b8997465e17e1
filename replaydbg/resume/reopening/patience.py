"""Open what the rules open, and wait for addresses that closed connections of the program still keep."""

from __future__ import annotations

import time
from collections.abc import Callable

from replaydbg.resources.kinds import OpenResource
from replaydbg.resume.plan_rows import AddressKept
from replaydbg.resume.reopening.kept_addresses import LONGEST
from replaydbg.resume.reopening.rules import RULES

Waits = Callable[[str], None]
"""Hears which address is waited for."""

_INTERVAL = 0.2


def reopen_patiently(
    opened: OpenResource, waits: Waits | None = None, pause: Callable[[float], object] = time.sleep
) -> int:
    """Return a new descriptor for a resource, by its rule. Raises CannotReopen, and what `pause` raises.

    While closed connections keep its address, `pause` is called with the seconds until it is tried again.
    """
    until = 0.0
    while True:
        try:
            return RULES[type(opened)].reopen(opened)
        except AddressKept as kept:
            if not until:
                until = time.monotonic() + LONGEST
                if waits is not None:
                    waits(kept.address)
            elif time.monotonic() > until:
                raise
            pause(_INTERVAL)
