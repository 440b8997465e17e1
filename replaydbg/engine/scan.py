"""A run of a separate process over a stretch of lines, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from replaydbg.classes import dataclass
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import RunOrder, Watch, Watches
from replaydbg.engine.reports import EndReport, Where
from replaydbg.errors import EngineLost


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a scan."""

    where: Where
    """The position at the end of the stretch."""
    watches: tuple[Watch, ...]
    """The watched values; empty: none, or a predicate."""
    begins: tuple[tuple[int, int], ...]
    """For each of them its `whereabouts` at the beginning; zeros unless it is watched by its address."""
    ends: tuple[tuple[int, int], ...]
    """The same at the end."""


def whereabouts(worker: EngineProcess, watches: Sequence[Watch]) -> tuple[tuple[int, int], ...]:
    """Return for each the address and the type of its value, or of the object that has no such value.

    Zeros: the object is not there, or the watch is not on an object. Two processes whose answers differ have their
    objects at different addresses.
    """
    of_objects = [each for each in watches if each.object[0]]
    if not of_objects:
        return ((0, 0),) * len(watches)
    both = worker.locate_each([*of_objects, *(replace(each, steps=()) for each in of_objects)])
    found = {
        watch: value.object if value.object[0] else owner.object
        for watch, value, owner in zip(of_objects, both, both[len(of_objects) :], strict=False)
    }
    return tuple(found.get(each, (0, 0)) for each in watches)


class Scan:
    """A process that runs over a stretch. Close it."""

    def __init__(self, worker: EngineProcess, last: int, order: RunOrder) -> None:
        """Let `worker`, which is at the beginning, run to the line `last`. Raises EngineLost."""
        self._worker, self._last = worker, last
        watch = order.watch
        self._watches = watch.each if isinstance(watch, Watches) else (watch,) if isinstance(watch, Watch) else ()
        try:
            self._begins = whereabouts(worker, self._watches)
            worker.start(replace(order, until=last))
        except BaseException:
            worker.kill()
            raise

    def finish(self, idle: Callable[[], None]) -> Scanned:
        """Wait until it is there. Raises EngineLost, and what `idle` raises to cancel."""
        where = self._worker.await_stop(idle=idle)
        if isinstance(where, EndReport):
            raise EngineLost(f"it ended before line {self._last:,}: {where.reason}")
        return Scanned(where, self._watches, self._begins, whereabouts(self._worker, self._watches))

    def close(self) -> None:
        """End the process wherever it is."""
        self._worker.kill()
