"""Asking a question of the user's: its answer, how long it may take, and whether the program went on as before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from replaydbg.bisect.verdict import Verdict
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.engine.messages import Where
from replaydbg.errors import UsageError

LONGEST_STRETCH, LONGEST_LINE = 20.0, 0.001
"""Seconds for asking at each line of a stretch where there is no other way, and for each line in addition."""

_VERDICTS = (Verdict.GOOD, Verdict.BAD, Verdict.UNDECIDED)


def verdict_of(answer: Any) -> tuple[Verdict, str]:
    """Return what `judged` of inside.py says: the verdict, and why."""
    if isinstance(answer, dict):
        return Verdict.UNDECIDED, str(answer["failed"])
    verdict, said = answer
    return _VERDICTS[verdict], said


def is_disturbed(view: ReplayView, where: Where) -> bool:
    """Whether a process that has been asked went another way: by what it imported, or by what it changed."""
    other = view.look_at(where.count)
    return (where.event, where.lane, where.digest) != (other.event, other.lane, other.digest)


def in_time(view: ReplayView, begin: int, end: int) -> Callable[[], None]:
    """Return what gives up after a time in which asking at the lines between is done, unless it goes on for ever.

    It raises UsageError then.
    """
    longest = LONGEST_STRETCH + (end - begin) * LONGEST_LINE
    until = time.monotonic() + longest

    def idle() -> None:
        view.work.idle()
        if time.monotonic() > until:
            moment = view.index.moment
            raise UsageError(
                f"Evaluating at each line between {moment(begin)} and {moment(end)} took longer than {longest:.0f} s: "
                "narrow the range with --from and --to, or use a cheaper expression."
            )

    return idle
