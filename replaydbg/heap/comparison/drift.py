"""Compare a run with a golden snapshot: differences from the baseline, without those that are expected."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.heap.comparison.diff_results import Diff, without
from replaydbg.heap.comparison.snapshot_diff import MOST, diff
from replaydbg.heap.retention.holding import MINE, Holding
from replaydbg.heap.snapshot import Snapshot


def drift(
    golden: Snapshot | Holding,
    now: Snapshot | Holding,
    *,
    ignore: Sequence[str] = (),
    most: int | None = MOST,
    scope: str = MINE,
) -> Diff:
    """Return the differences between a golden snapshot and one of another run, at most `most` in each section.

    Changes at paths that match one of the patterns `ignore`, such as `app.stats*`, are left out; if nothing else is
    left, the difference is empty.
    """
    if not ignore:
        return diff(golden, now, most=most, scope=scope, by_identity=False)
    return without(diff(golden, now, most=None, scope=scope, by_identity=False), ignore, most)
