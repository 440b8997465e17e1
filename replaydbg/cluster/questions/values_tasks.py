"""Tasks that evaluate an expression at many positions of a recorded process: the questions of `bisect cuts`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from replaydbg.cluster.tasks import ContentSink, JsonObject, RecordingTask, TaskPool, results
from replaydbg.debugger.values.values_at_moments import ModuleValue
from replaydbg.errors import clause


@dataclass(frozen=True, slots=True, eq=False)
class ValuesOf:
    """The values of an expression at positions of a process."""

    positions: tuple[int, ...]
    """Numbers of events."""
    expression: str
    module: str
    """The module in which it is evaluated."""

    @property
    def kind(self) -> str:
        """The name of its handler."""
        return "values"

    def order(self, recording: Path | None, sink: ContentSink) -> JsonObject:
        """Return the fields of the order. Raises ReplaydbgError and OSError."""
        assert recording is not None, self
        return {
            "recording": sink.recording(recording),
            "positions": list(self.positions),
            "expression": self.expression,
            "module": self.module,
        }


class ClusterValues:
    """Values at positions of the processes of a group, evaluated by the tasks of a pool."""

    def __init__(self, pool: TaskPool, path_of: Callable[[int], Path]) -> None:
        """`path_of` returns the recording of a process."""
        self._pool, self._path_of = pool, path_of

    def at(
        self, wanted: Mapping[int, Iterable[int]], expression: str, *, module: str
    ) -> dict[int, dict[int, ModuleValue]]:
        """Return the values, by process and position; those that no worker can evaluate have a reason instead."""
        tasks: dict[RecordingTask, int] = {}
        for process, positions in wanted.items():
            for chunk in _chunks(sorted(positions), max(1, self._pool.slots // len(wanted))):
                tasks[RecordingTask(self._path_of(process), ValuesOf(tuple(chunk), expression, module))] = process
        found: dict[int, dict[int, ModuleValue]] = {process: {} for process in wanted}
        for each in results(self._pool, tasks):
            question = each.task.question
            assert isinstance(question, ValuesOf)
            given = each.facts.get("values", {})
            for position in question.positions:
                text, reason = given.get(str(position), ("", clause(each.why)))
                found[tasks[each.task]][position] = ModuleValue(text, reason)
        return found


def _chunks(positions: Sequence[int], most: int) -> list[Sequence[int]]:
    """Divide positions into at most so many parts; each costs a replay up to its last position."""
    size = max(1, -(-len(positions) // most))
    return [positions[start : start + size] for start in range(0, len(positions), size)]
