"""Questions about the current position of a session: values, stacks, tasks, expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from replaydbg.debugger.long_work import LongWork
from replaydbg.debugger.results import Evaluation, Task, Variable
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.engine.messages import Frame
from replaydbg.engine.worker import EngineProcess
from replaydbg.errors import AskFailed, UsageError


@dataclass(frozen=True, slots=True)
class At:
    """A frame."""

    frame: int = 0
    """From the innermost one, 0."""
    lane: int | None = None
    """None: the one that runs."""


class Standing(Protocol):
    """A position in a run whose frames can be asked about."""

    @property
    def cursor(self) -> EngineProcess:
        """The process at that position."""

    @property
    def work(self) -> LongWork:
        """Progress and cancellation."""


class FrameQueries:
    """Questions about frames, each answered by a throw-away copy of the process at the current position."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    def variables(self, frame: int = 0, *, lane: int | None = None, of_module: bool = False) -> tuple[Variable, ...]:
        """Return the local variables of a frame, or its module's."""
        self._standing.work.begin("reading variables")
        return tuple(Variable(*each) for each in self._ask("variables", frame, lane, globals=of_module))

    def parts(self, expression: str, frame: int = 0, *, lane: int | None = None) -> tuple[Variable, ...]:
        """Return the items or attributes of a value; at most 1,000."""
        self._standing.work.begin(f"reading {expression}")
        return tuple(Variable(*each) for each in self._ask("items", frame, lane, source=expression))

    def evaluate(
        self, source: str, frame: int = 0, *, lane: int | None = None, truth: bool = False, seconds: float = 5.0
    ) -> Evaluation:
        """Run an expression or statements in a throw-away copy of the program; nothing of it stays.

        Raises AskFailed if it ends the copy, takes longer than `seconds`, or waits for another thread.
        """
        self._standing.work.begin("evaluating")
        return self._evaluation(self._standing.cursor, source, frame, lane, truth, seconds)

    def _evaluation(
        self, worker: EngineProcess, source: str, frame: int, lane: int | None, truth: bool, seconds: float = 5.0
    ) -> Evaluation:
        question = {"do": "evaluate", "source": source, "frame": frame, "lane": lane, "truth": truth}
        told = checked(worker.ask(question, seconds=seconds, idle=self._standing.work.idle))
        value = Variable(*told["value"]) if told["value"] is not None else None
        return Evaluation(value, told["output"], told["error"], told["truth"])

    def arguments(self, frame: int = 0, *, lane: int | None = None) -> tuple[Variable, ...]:
        """Return the parameters of a frame's function, as they are now."""
        self._standing.work.begin("reading arguments")
        return tuple(Variable(*each) for each in self._ask("arguments", frame, lane))

    def stack(self, lane: int | None = None) -> Sequence[Frame]:
        """Return the frames of a lane, innermost first; without a number, of the one that runs.

        Of a deep stack those far out are fetched when they are asked for, as long as the session stands here.
        """
        return self._standing.cursor.stack(lane)

    def tasks(self) -> tuple[Task, ...]:
        """Return the asyncio tasks that are not done."""
        self._standing.work.begin("reading tasks")
        return tuple(Task(name, tuple(map(tuple, frames)), waits) for name, frames, waits in self._ask("tasks"))

    def exceptions(self) -> tuple[tuple[str, str], ...]:
        """Return the exception that is being handled, and what led to it: type and text."""
        self._standing.work.begin("reading exceptions")
        return tuple((name, text) for name, text in self._ask("exception"))

    # ---- for search and writes ----

    def evaluate_at(self, worker: EngineProcess, source: str, frame: int = 0) -> Evaluation:
        """Run an expression where another process stands."""
        return self._evaluation(worker, source, frame, None, False)

    def text_of(self, source: str, at: At) -> str:
        """Return the value of an expression in a frame as text, or how it failed. Raises AskFailed."""
        told = self._evaluation(self._standing.cursor, source, at.frame, at.lane, False)
        return told.value.text if told.value is not None else str(told.error)

    def ask_about(self, at: At, what: str, **more: object) -> Any:
        """Ask `inside.py` about a frame here."""
        return self._ask(what, at.frame, at.lane, **more)

    def is_mutable(self, place: PlaceExpression, at: At) -> bool:
        """Whether the value may change by itself."""
        return bool(self.ask_about(at, "mutable", source=place.source))

    def unseen_content(self, place: PlaceExpression, at: At) -> str:
        """Return what is to be said of a value whose content only its own C code can read; empty: all of it is seen."""
        try:
            kind = self.ask_about(at, "opaque", source=place.source)
        except AskFailed:
            return ""
        return f"the content of a {kind} is not tracked: it may have changed since" if kind else ""

    def object_text(self, worker: EngineProcess, located: tuple[int, int]) -> str:
        """Return the object that `worker` located as text; empty: it does not exist."""
        try:
            return str(checked(worker.ask({"do": "of_object", "object": located}, idle=self._standing.work.idle))[2])
        except AskFailed:
            return ""

    def check_steps(self, place: PlaceExpression, at: At) -> None:
        """Raise UsageError if a value cannot be followed without running Python."""
        told = self.ask_about(at, "kinds", source=place.name, steps=place.keys)
        if told is not None:
            raise UsageError(f"{place.source!r} cannot be tracked: {told}.")

    def judge(self, worker: EngineProcess, condition: str) -> str | None:
        """Return None if a breakpoint's condition is not true where `worker` stands.

        One that raises, or has no answer, counts as true: then what happened is returned; otherwise nothing, "".
        """
        try:
            told = self._evaluation(worker, condition, 0, None, True)
        except AskFailed as error:
            return f"its condition cannot be evaluated: {error.reason}"
        if told.error is not None:
            return f"its condition raised {told.error}"
        return "" if told.truth else None

    def _ask(self, what: str, frame: int = 0, lane: int | None = None, **more: object) -> Any:
        return checked(
            self._standing.cursor.ask({"do": what, "frame": frame, "lane": lane} | more, idle=self._standing.work.idle)
        )


def checked(told: Any) -> Any:
    """Return an answer of `inside.py`. Raises AskFailed if it is that there is none."""
    if isinstance(told, dict) and "failed" in told:
        raise AskFailed(told["failed"])
    return told
