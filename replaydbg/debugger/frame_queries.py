"""Questions about the current position of a session: values, stacks, tasks, expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from replaydbg.classes import dataclass
from replaydbg.debugger.long_work import LongWork
from replaydbg.debugger.session_results import Evaluation, Task, Variable
from replaydbg.debugger.source.place_expressions import Indices, PlaceExpression
from replaydbg.engine.completion.offers import OfferAttributes, Offered, OfferKeys, OfferNames
from replaydbg.engine.described_values import described_values
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.queries import (
    DescribeObject,
    Evaluate,
    FindEntry,
    FindObstacle,
    FindOpaqueType,
    FindRows,
    FindVariable,
    GetArguments,
    GetCachedSource,
    GetHandledExceptions,
    GetItems,
    GetModules,
    GetModuleVariables,
    GetTasks,
    GetVariables,
    IsMutable,
    ItemKey,
    ListQuery,
    Query,
)
from replaydbg.engine.query_results import DictEntry, LoadedModule, VariableHome
from replaydbg.engine.reports import Frame
from replaydbg.errors import AskFailed, UsageError
from replaydbg.events.nearest_words import nearest

A = TypeVar("A")

_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined$")

MOST_PARTS = 1000
"""Parts of a value in one answer."""


@dataclass(frozen=True, slots=True)
class At:
    """A frame."""

    frame: int = 0
    """From the innermost one, 0."""
    lane: int | None = None
    """None: the one that runs."""


def condition_raised(error: str) -> str:
    """Return the note about a breakpoint's condition that raised: it counts as true."""
    return f"its condition raised {error}"


class Standing(Protocol):
    """A position in a run whose frames can be asked about."""

    @property
    def cursor(self) -> EngineProcess:
        """The process at that position."""

    @property
    def work(self) -> LongWork:
        """Progress and cancellation."""

    def frames(self, lane: int | None) -> Sequence[Frame]:
        """Return the frames of a thread there (None: the running one), innermost first."""


@dataclass(frozen=True, slots=True)
class _IndicesAt:
    queries: FrameQueries
    ask: Callable[[Query[Any]], Any]
    at: At

    def text_of(self, index: str) -> str:
        return self.queries.text_of(index, self.at)

    def entry_of(self, container: str, index: str) -> DictEntry | None:
        """Return the key that a dictionary holds for an index; if it holds none, the index itself."""
        query = FindEntry(self.at.frame, self.at.lane, container, index)
        try:
            found: DictEntry | None = self.ask(query)
        except AskFailed as error:
            name = _UNDEFINED.search(error.reason)
            hint = nearest(name[1], self.queries.names(self.at)) if name is not None else ""
            raise UsageError(f"'{container}[{index}]' cannot be tracked: {error.reason}{hint}.") from None
        return found


class FrameQueries:
    """Questions about frames, each answered by a throw-away copy of the process at the current position."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    def variables(self, frame: int = 0, *, lane: int | None = None, of_module: bool = False) -> tuple[Variable, ...]:
        """Return the local variables of a frame, or its module's; at most MOST_LISTED."""
        self._standing.work.begin("reading variables")
        return self._described(GetVariables(frame, lane, globals=of_module))

    def modules(self) -> tuple[LoadedModule, ...]:
        """Return the modules that the program has loaded, by their names."""
        self._standing.work.begin("reading modules")
        return self._ask(GetModules())

    def cached_source(self, file: str) -> str | None:
        """Return the text that the program's `linecache` has for a file; None: it has none."""
        return self._ask(GetCachedSource(file))

    def module_variables(self, module: str) -> tuple[Variable, ...]:
        """Return the variables of a module; at most MOST_LISTED. Raises AskFailed if it is not loaded."""
        self._standing.work.begin("reading variables")
        return self._described(GetModuleVariables(module=module))

    def parts(
        self, expression: str, frame: int = 0, *, lane: int | None = None, first: int = 0, most: int = MOST_PARTS
    ) -> tuple[Variable, ...]:
        """Return the items or attributes of a value from the one with the index `first` on; at most 1,000."""
        self._standing.work.begin(f"reading {expression}")
        return self._described(GetItems(frame, lane, source=expression, first=first, most=min(most, MOST_PARTS)))

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
        return worker.ask(Evaluate(frame, lane, source, truth), seconds=seconds, idle=self._standing.work.idle)

    def offers(self, query: OfferNames | OfferAttributes | OfferKeys, *, seconds: float) -> Offered:
        """Return what may complete a name, an attribute or a key. Raises AskFailed.

        If it takes longer than `seconds`, or ends the copy, another copy is asked, which does less: see `asks_object`.
        """
        self._standing.work.begin("completing")
        cursor, idle = self._standing.cursor, self._standing.work.idle
        try:
            return cursor.ask(query, seconds=seconds, idle=idle)
        except AskFailed:
            if isinstance(query, OfferNames):
                raise
        return cursor.ask(replace(query, asks_object=False), seconds=seconds, idle=idle)

    def arguments(self, frame: int = 0, *, lane: int | None = None) -> tuple[Variable, ...]:
        """Return the parameters of a frame's function, as they are now."""
        self._standing.work.begin("reading arguments")
        return self._described(GetArguments(frame, lane))

    def stack(self, lane: int | None = None) -> Sequence[Frame]:
        """Return the frames of a thread, innermost first (default: the running one).

        Outer frames of a deep stack are fetched on demand, as long as the session stays at this position.
        """
        return self._standing.frames(lane)

    def tasks(self) -> tuple[Task, ...]:
        """Return the asyncio tasks that are not done."""
        self._standing.work.begin("reading tasks")
        return self._ask(GetTasks())

    def exceptions(self) -> tuple[tuple[str, str], ...]:
        """Return the exception that is being handled, and what led to it: type and text."""
        self._standing.work.begin("reading exceptions")
        return self._ask(GetHandledExceptions())

    # ---- for search and writes ----

    def evaluate_at(self, worker: EngineProcess, source: str, frame: int = 0) -> Evaluation:
        """Evaluate an expression at the position of another process."""
        return self._evaluation(worker, source, frame, None, False)

    def text_of(self, source: str, at: At) -> str:
        """Return the value of an expression in a frame as text, or how it failed. Raises AskFailed."""
        result = self._evaluation(self._standing.cursor, source, at.frame, at.lane, False)
        return result.value.text if result.value is not None else str(result.error)

    def indices(self, at: At) -> Indices:
        """Return what the indices of an expression mean in a frame."""
        return _IndicesAt(self, self._ask, at)

    def home_of(self, place: PlaceExpression, at: At) -> VariableHome:
        """Return the namespace in which the variable lives at which a place begins, as a frame sees it."""
        return self._ask(FindVariable(at.frame, at.lane, place.name, place.keys))

    def names(self, at: At) -> set[str]:
        """Return the names of the variables that a frame sees, without builtins."""
        both = (GetVariables(at.frame, at.lane, has_texts=False, globals=each) for each in (False, True))
        return {each.name for query in both for each in self._ask(query)}

    def local_names(self, at: At) -> set[str]:
        """Return the names of the local variables of a frame."""
        return {each.name for each in self._ask(GetVariables(at.frame, at.lane, has_texts=False))}

    def names_in_module(self, module: str) -> set[str]:
        """Return the names of a module's variables. Raises AskFailed if it is not loaded."""
        return {each.name for each in self._ask(GetModuleVariables(module=module, has_texts=False))}

    def is_mutable(self, place: PlaceExpression, at: At) -> bool:
        """Whether the value may change by itself."""
        return self._ask(IsMutable(at.frame, at.lane, place.source))

    def opaque_content_note(self, place: PlaceExpression, at: At) -> str:
        """Return a note about a value whose content only its own C code can read; empty: all of it is seen."""
        try:
            kind = self._ask(FindOpaqueType(at.frame, at.lane, place.source))
        except AskFailed:
            return ""
        return f"the content of a {kind} is not tracked: it may have changed since" if kind else ""

    def object_text(self, worker: EngineProcess, located: tuple[int, int], item: ItemKey | None = None) -> str:
        """Return the object that `worker` located, or an item of it, as text; empty: it does not exist."""
        try:
            return worker.ask(DescribeObject(located, item), idle=self._standing.work.idle).text
        except AskFailed:
            return ""

    def rows(self, place: PlaceExpression, at: At) -> list[int]:
        """Return which steps of a place, counted from 0, lead to rows of arrays, which are no objects of their own."""
        try:
            return self._ask(FindRows(at.frame, at.lane, place.variable, place.keys))
        except AskFailed:
            return []  # the reason is reported when the place is tracked

    def check_steps(self, place: PlaceExpression, at: At) -> None:
        """Raise UsageError if a value cannot be followed without running Python."""
        obstacle = self._ask(FindObstacle(at.frame, at.lane, place.variable, place.keys))
        if obstacle is not None:
            raise UsageError(f"{place.source!r} cannot be tracked: {obstacle}.")

    def judge(self, worker: EngineProcess, condition: str) -> str | None:
        """Return None if a breakpoint's condition is not true at the position of `worker`.

        A condition that raises or fails counts as true: then the reason is returned. A true one returns "".
        """
        try:
            result = self._evaluation(worker, condition, 0, None, True)
        except AskFailed as error:
            return f"its condition cannot be evaluated: {error.reason}"
        if result.error is not None:
            return condition_raised(result.error)
        return "" if result.truth else None

    def _described(self, query: ListQuery) -> tuple[Variable, ...]:
        return described_values(self._standing.cursor, query, self._standing.work.idle)

    def _ask(self, query: Query[A]) -> A:
        return self._standing.cursor.ask(query, idle=self._standing.work.idle)
