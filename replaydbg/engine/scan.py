"""A run of a separate process over a stretch of lines, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import RunOrder, Watch
from replaydbg.engine.reports import EndReport, Where
from replaydbg.errors import EngineLost


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a scan."""

    where: Where
    """The position at the end of the stretch."""
    begins: tuple[int, int]
    """The whereabouts of what is watched by its address at the beginning; zeros: nothing is."""
    ends: tuple[int, int]
    """The same at the end."""


def whereabouts(worker: EngineProcess, watch: Watch) -> tuple[int, int]:
    """Return the address and the type of the value of `watch`, or of the object that has no such value.

    Zeros: the object is not there. Two processes whose answers differ have their objects at different addresses.
    """
    found = worker.locate(watch)
    return found if found[0] or not watch.steps else worker.locate(replace(watch, steps=()))


class Scan:
    """A process that runs over a stretch. Close it."""

    def __init__(self, worker: EngineProcess, last: int, order: RunOrder) -> None:
        """Let `worker`, which is at the beginning, run to the line `last`. Raises EngineLost."""
        self._worker, self._last = worker, last
        watch = order.watch
        self._wanted = watch if isinstance(watch, Watch) and watch.object[0] else None
        try:
            self._begins = whereabouts(worker, self._wanted) if self._wanted is not None else (0, 0)
            worker.start(replace(order, until=last))
        except BaseException:
            worker.kill()
            raise

    def finish(self, idle: Callable[[], None]) -> Scanned:
        """Wait until it is there. Raises EngineLost, and what `idle` raises to cancel."""
        where = self._worker.await_stop(idle=idle)
        if isinstance(where, EndReport):
            raise EngineLost(f"it ended before line {self._last:,}: {where.reason}")
        ends = whereabouts(self._worker, self._wanted) if self._wanted is not None else (0, 0)
        return Scanned(where, self._begins, ends)

    def close(self) -> None:
        """End the process wherever it is."""
        self._worker.kill()
