"""How far a run has drifted from a golden snapshot: what differs from the baseline, without what is known to."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.heap.diff import MOST, diff
from replaydbg.heap.difference import Diff, without
from replaydbg.heap.holding import MINE, Holding
from replaydbg.heap.snapshot import Snapshot


def drift(
    golden: Snapshot | Holding,
    now: Snapshot | Holding,
    *,
    ignore: Sequence[str] = (),
    most: int | None = MOST,
    scope: str = MINE,
) -> Diff:
    """Return what differs between a golden snapshot and one of another run, at most `most` answers in each section.

    What lies at paths that match one of the patterns `ignore`, such as `app.stats*`, is left out; where nothing else
    is left, the difference is empty.
    """
    if not ignore:
        return diff(golden, now, most=most, scope=scope, by_identity=False)
    return without(diff(golden, now, most=None, scope=scope, by_identity=False), ignore, most)
