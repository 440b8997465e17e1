"""The collector's counts with which a recorded program begins: where its automatic collections come depends on them."""

from __future__ import annotations

import gc
import sys

# Counts of the generations, youngest first, when an interpreter of that version begins to import `site`: allocations of
# tracked objects since the last collection of the youngest; for each older one, collections of the next younger one
# since its own last. Measured at the first line of a script, in plain and in recorded runs; builds with other built-in
# modules differ by a few allocations. A wrong value changes where collections come, and nothing else.
_PLAIN = {(3, 11): (385, 6, 0), (3, 12): (450, 3, 0), (3, 13): (416, 2, 0), (3, 14): (228, 2, 0)}
# An interpreter makes no full collection before it imports `site`, so none of its objects counts as long-lived.
_LONG_LIVED = 0


def first_counts(chaos: int | None) -> tuple[int, ...]:
    """Return the counts of the three generations, youngest first, and the number of long-lived objects.

    They are those of a plain run; with `chaos`, the seed of uneven slices, the counts are drawn below their thresholds,
    so that collections come elsewhere in each run. See docs/explanation/design/garbage.md.
    """
    if chaos is None:
        return *_PLAIN.get(sys.version_info[:2], (0, 0, 0)), _LONG_LIVED
    import random  # here: it takes 2 ms, which ordinary recordings need not pay

    draws = random.Random(chaos)
    return *(draws.randrange(max(1, threshold)) for threshold in gc.get_threshold()), _LONG_LIVED
