"""The time limit of evaluating a predicate at each line, and a check whether that changed the program."""

from __future__ import annotations

import time
from collections.abc import Callable

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.engine.reports import Where
from replaydbg.errors import UsageError

LONGEST_STRETCH, LONGEST_LINE = 20.0, 0.001
"""Seconds for evaluating at each line of a stretch if there is no alternative, and more seconds for each line."""


def is_disturbed(view: ReplayView, where: Where) -> bool:
    """Whether evaluating the predicate changed the path of a process, by imports or other side effects."""
    other = view.look_at(where.count)
    return (where.event, where.lane, where.digest) != (other.event, other.lane, other.digest)


def in_time(view: ReplayView, begin: int, end: int) -> Callable[[], None]:
    """Return an `idle` that raises UsageError after the time that evaluating at the lines in between may take."""
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
