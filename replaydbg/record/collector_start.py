"""The collector's counts with which a recorded program begins: where its automatic collections come depends on them."""

from __future__ import annotations

import gc
import sys

# Count of the youngest generation when an interpreter of that version begins to import `site`: allocations of tracked
# objects since its last collection. Measured at the first line of a script, plainly and recorded; builds
# with other built-in modules differ by a few. A wrong value changes where collections come, and nothing else.
_PLAIN = {(3, 11): 385, (3, 12): 450, (3, 13): 416}


def first_counts(chaos: int | None) -> tuple[int, int, int]:
    """Return the counts of the three generations, youngest first.

    That of the youngest is the one of a plain run; with `chaos`, the seed of uneven slices, it is drawn below the
    threshold, so that collections come elsewhere in each run. The others are 0: see docs/explanation/design/garbage.md.
    """
    if chaos is None:
        return _PLAIN.get(sys.version_info[:2], 0), 0, 0
    import random  # here: it takes 2 ms, which ordinary recordings need not pay

    return random.Random(chaos).randrange(max(1, gc.get_threshold()[0])), 0, 0
