"""Random priorities with few changes: a bug of depth d is found with a known probability.

S. Burckhardt and others, A randomized scheduler with probabilistic guarantees of finding bugs, 2010: with n threads and
k steps, at least 1 in n * k ** (d - 1) futures meets a bug that needs d steps in a certain order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from replaydbg.futures.schedules.decisions import Decision, PreemptionPoint
from replaydbg.futures.schedules.given import FutureSchedule, ScheduleKind


def bounded_schedule(seed: int, depth: int, steps: int, *, traces: bool = False) -> FutureSchedule:
    """Return a schedule for bugs of a depth from 1 on, in a program that takes about so many steps."""
    drawn = random.Random(seed)
    changes = sorted(drawn.randint(1, max(steps, 1)) for _ in range(depth - 1))
    return FutureSchedule(ScheduleKind.PRIORITIES, changes=tuple(changes), traces=traces)


def steps_of(decisions: Sequence[Decision]) -> int:
    """Return how many steps a future took that reports its points: only there can a switch make a difference."""
    return sum(1 for each in decisions if isinstance(each, PreemptionPoint))
