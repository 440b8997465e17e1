"""The heaps of the processes of a group at a cut: a replay of each process has the one at its position."""

from __future__ import annotations

from replaydbg.debugger import Session
from replaydbg.debugger.object_history import holdings
from replaydbg.groups.cut_values import count_at
from replaydbg.heap.limits import Which
from replaydbg.heap.snapshot import Snapshot


def heap_at(session: Session, position: int, *, which: Which = "mine") -> Snapshot:
    """Return the heap of a process at a position of a cut, from 1; after its own last line that before this line.

    `which`: the objects to start from, as for `heap`. Raises EngineLost.
    """
    (found,) = holdings(session, [min(count_at(session, position), session.index.end)], which=which)
    return found.snapshot
