"""Queries that the probe answers inside a copy of the program: their fields, the shape of their answers, the results.

The program that a query is put to can give any answer, so each is checked against its shape before it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Literal, TypeVar

from replaydbg.engine.query_results import (
    DictEntry,
    Evaluation,
    Exported,
    LoadedModule,
    ObjectContent,
    SequenceItems,
    Task,
    Variable,
    VariableHome,
)
from replaydbg.errors import AskFailed, ForgedMessage
from replaydbg.events.verdict import Verdict
from replaydbg.log.coding.shapes import COUNT, DictOf, ListOf, one_of

A = TypeVar("A")

EntryKey = tuple[Literal["entry"], int, int]
"""A key that a dictionary holds, with the addresses of the key and of its type."""

ItemKey = str | int | tuple[int, ...] | EntryKey
"""A tuple of numbers: an item of an array of several dimensions."""

Step = tuple[Literal["attribute"], str] | tuple[Literal["item"], ItemKey]
"""A step on the path from a variable to a value, as the probe reads it."""

_FAILED = {"failed": str}
"""The answer of a query that failed, with the reason."""

_VARIABLE = (str, str, str, COUNT, COUNT)
_TEXT_OR_NONE = one_of(None, str)
MOST_LISTED = 2_000
"""How many values an answer describes."""
MOST_ITEMS = 20_000
"""How many items a sequence may have whose items are compared one by one."""


@dataclass(frozen=True, slots=True)
class Query(Generic[A]):
    """A query; its fields are those that the probe reads."""

    tag: ClassVar[str]
    """Its name in the probe's registry."""
    shape: ClassVar[object]
    """The shape of its answers: see `shapes.fits`."""

    def encode(self) -> bytes:
        """Return it as the probe reads it."""
        return repr(self.plain()).encode("utf-8", "surrogatepass")

    def plain(self) -> dict[str, Any]:
        """Return it as a dict of plain values."""
        return {"do": self.tag} | {each.name: getattr(self, each.name) for each in fields(self)}

    def result(self, answer: Any) -> A:
        """Return the result of an answer that has the shape. Raises AskFailed if the query failed."""
        if isinstance(answer, dict) and "failed" in answer:
            raise AskFailed(answer["failed"])
        return self._read(answer)

    def _read(self, answer: Any) -> A:
        read: A = answer
        return read


@dataclass(frozen=True, slots=True)
class FrameQuery(Query[A]):
    """A query about a frame."""

    frame: int = 0
    """From the innermost one, 0."""
    lane: int | None = None
    """None: the running thread."""


@dataclass(frozen=True, slots=True)
class ListQuery(FrameQuery[tuple[Variable, ...]]):
    """A query about several values, or some of them."""

    shape = ListOf(_VARIABLE)
    start: int = 0
    stop: int = MOST_LISTED
    """Only values with these indices are described."""
    has_texts: bool = True
    """Whether their texts and digests are asked for, which runs code of the program; else these are empty and 0."""

    def _read(self, answer: Any) -> tuple[Variable, ...]:
        return tuple(Variable(*each) for each in answer)


@dataclass(frozen=True, slots=True)
class GetVariables(ListQuery):
    """The local variables of a frame, or with `globals` those of its module."""

    tag = "variables"
    globals: bool = False


@dataclass(frozen=True, slots=True)
class GetModuleVariables(ListQuery):
    """The variables of a loaded module; AskFailed if it is not loaded."""

    tag = "module_variables"
    module: str = ""


@dataclass(frozen=True, slots=True)
class GetModules(Query[tuple[LoadedModule, ...]]):
    """The loaded modules."""

    tag = "modules"
    shape = ListOf((str, str, COUNT))

    def _read(self, answer: Any) -> tuple[LoadedModule, ...]:
        return tuple(LoadedModule(*each) for each in answer)


@dataclass(frozen=True, slots=True)
class GetCachedSource(Query[str | None]):
    """The text that the program's `linecache` has for a file; None: it has none."""

    tag = "cached_source"
    shape = _TEXT_OR_NONE
    file: str = ""


@dataclass(frozen=True, slots=True)
class GetArguments(ListQuery):
    """The parameters of a frame's function."""

    tag = "arguments"


@dataclass(frozen=True, slots=True)
class GetItems(ListQuery):
    """The items or attributes of the value of an expression."""

    tag = "items"
    source: str = ""
    first: int = 0
    """The index of the first one that is meant: `start` and `stop` count from it."""
    most: int = 1_000
    """How many are meant."""


@dataclass(frozen=True, slots=True)
class Evaluate(FrameQuery[Evaluation]):
    """The result of an expression or statements."""

    tag = "evaluate"
    shape: ClassVar[object] = {
        "value": one_of(None, _VARIABLE),
        "output": str,
        "error": _TEXT_OR_NONE,
        "truth": one_of(None, bool),
    }
    source: str = ""
    truth: bool = False
    """Whether to ask for the value's truth as well."""

    def _read(self, answer: Any) -> Evaluation:
        value = Variable(*answer["value"]) if answer["value"] is not None else None
        return Evaluation(value, answer["output"], answer["error"], answer["truth"])


@dataclass(frozen=True, slots=True)
class ChangeProgram(FrameQuery[None]):
    """Run statements in the program itself."""

    tag = "change"
    shape = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class FindVariable(FrameQuery[VariableHome]):
    """The namespace in which a variable lives."""

    tag = "place"
    shape = one_of(("local", bool), ("global", str), ("module", COUNT), ("lost", str), ("absent", str))
    name: str = ""
    steps: tuple[Step, ...] = ()
    """The path behind the name, which may be that of a module: then one of these is the variable in it."""

    def _read(self, answer: Any) -> VariableHome:
        kind, detail = answer
        if kind == "module":
            return VariableHome("module", step=detail)
        return VariableHome(kind, is_cell=detail) if kind == "local" else VariableHome(kind, detail=detail)


@dataclass(frozen=True, slots=True)
class FindObstacle(FrameQuery[str | None]):
    """The reason why the value at the end of `steps` from `source` cannot be tracked; None: it can."""

    tag = "kinds"
    shape = _TEXT_OR_NONE
    source: str = ""
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class FindRows(FrameQuery[list[int]]):
    """Those of `steps` from `source`, counted from 0, that lead to a row of an array."""

    tag = "rows"
    shape = ListOf(COUNT)
    source: str = ""
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class FindEntry(FrameQuery[DictEntry | None]):
    """The key that a dictionary holds and that is equal to a key; None: it is not a dictionary."""

    tag = "entry"
    shape = one_of(None, (COUNT, COUNT, range(-(1 << 63), 1 << 63)))
    container: str = ""
    """An expression for the dictionary."""
    key: str = ""
    """An expression for the key."""

    def _read(self, answer: Any) -> DictEntry | None:
        return DictEntry(*answer) if answer is not None else None


@dataclass(frozen=True, slots=True)
class GetSequence(FrameQuery[SequenceItems]):
    """The addresses of the items of a list or a deque. Fails if it has more than MOST_ITEMS."""

    tag = "sequence"
    shape = (bool, ListOf(COUNT))
    owner: tuple[int, int] = (0, 0)
    """The addresses of the sequence and of its type."""
    source: str = ""
    """An expression that may name the sequence in the frame."""
    most: int = MOST_ITEMS

    def _read(self, answer: Any) -> SequenceItems:
        return SequenceItems(*answer)


@dataclass(frozen=True, slots=True)
class GetTasks(Query[tuple[Task, ...]]):
    """The asyncio tasks that are not done."""

    tag = "tasks"
    shape = ListOf((str, ListOf((str, COUNT, str)), str, range(2), ListOf(COUNT)))

    def _read(self, answer: Any) -> tuple[Task, ...]:
        if any(number >= len(answer) for each in answer for number in each[4]):
            raise ForgedMessage("it sent a task that awaits one that does not exist")
        return tuple(
            Task(name, tuple(map(tuple, frames)), waits, bool(runs), tuple(awaits))
            for name, frames, waits, runs, awaits in answer
        )


@dataclass(frozen=True, slots=True)
class GetHandledExceptions(FrameQuery[tuple[tuple[str, str], ...]]):
    """Type and text of the exception that is being handled, and of its causes."""

    tag = "exception"
    shape = ListOf((str, str))

    def _read(self, answer: Any) -> tuple[tuple[str, str], ...]:
        return tuple((name, text) for name, text in answer)


@dataclass(frozen=True, slots=True)
class IsMutable(FrameQuery[bool]):
    """Whether the value of an expression can change by itself."""

    tag = "mutable"
    shape = bool
    source: str = ""


@dataclass(frozen=True, slots=True)
class FindOpaqueType(FrameQuery[str | None]):
    """The type of a value whose content only its own C code can read; None: the content is seen."""

    tag = "opaque"
    shape = _TEXT_OR_NONE
    source: str = ""


@dataclass(frozen=True, slots=True)
class GetContent(Query[ObjectContent | None]):
    """The content of an object; None: it cannot be seen."""

    tag = "content"
    shape = one_of(None, {"type": str, "text": str, "held": int, "parts": DictOf((int, str))})
    object: tuple[int, int]
    """The addresses of the object and of its type."""

    def _read(self, answer: Any) -> ObjectContent | None:
        return ObjectContent(**answer) if answer is not None else None


@dataclass(frozen=True, slots=True)
class DescribeObject(Query[Variable]):
    """An object as text, or an item of it."""

    tag = "of_object"
    shape = _VARIABLE
    object: tuple[int, int]
    """The addresses of the object and of its type."""
    item: ItemKey | None = None
    """The key of the item of it that is meant; None: the object itself."""

    def _read(self, answer: Any) -> Variable:
        return Variable(*answer)


@dataclass(frozen=True, slots=True)
class ExportObject(FrameQuery[Exported]):
    """The value of an expression, pickled by dill, which is found at `path` if the program has none."""

    tag = "outgoing"
    shape = ({"type": str, "text": str, "lost": ListOf((str, str, str))}, bytes)
    source: str = ""
    path: str = ""

    def _read(self, answer: Any) -> Exported:
        head, data = answer
        return Exported(head["type"], head["text"], tuple(tuple(each) for each in head["lost"]), data)


@dataclass(frozen=True, slots=True)
class FindExceptionTypes(Query[frozenset[str]]):
    """The full names of the exception types that a name means."""

    tag = "types_named"
    shape = ListOf(str)
    name: str

    def _read(self, answer: Any) -> frozenset[str]:
        return frozenset(answer)


@dataclass(frozen=True, slots=True)
class GetSpans(FrameQuery[tuple[tuple[int, int, int, int], ...]]):
    """The source span of each instruction of a frame's code: lines and columns."""

    tag = "spans"
    shape = ListOf((COUNT, COUNT, COUNT, COUNT))

    def _read(self, answer: Any) -> tuple[tuple[int, int, int, int], ...]:
        return tuple(tuple(each) for each in answer)


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A place whose writes are looked for: an attribute, an item, or a variable."""

    module: str
    """Of a module's variable: the module's name."""
    object: tuple[int, int]
    """The addresses of the object that has the attribute or item, and of its type."""
    key: ItemKey | None
    """The name or key; None: the variable lives in a cell."""


@dataclass(frozen=True, slots=True)
class StoreQuery(FrameQuery[A]):
    """A query about writes to a StorePlace, whose fields it repeats."""

    module: str = ""
    object: tuple[int, int] = (0, 0)
    key: ItemKey | None = None


Target = tuple[str | None, str | None]
"""The expressions of a store's container and key."""


@dataclass(frozen=True, slots=True)
class MatchStores(StoreQuery[list[bool | None]]):
    """For each of `targets`: whether a store to it writes to the place; None: unknown."""

    tag = "stores"
    shape = ListOf(one_of(None, bool))
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class FindWaitingStores(StoreQuery[list[tuple[str, int]]]):
    """Those of `lines` at which tasks wait that are on no stack, and that store to the place."""

    tag = "waiting"
    shape = ListOf((str, COUNT))
    lines: dict[tuple[str, int], list[Target]] = field(default_factory=dict)

    def _read(self, answer: Any) -> list[tuple[str, int]]:
        return [(file, line) for file, line in answer]


@dataclass(frozen=True, slots=True)
class PredicateQuery(Query[A]):
    """A query about a predicate: see `debugger.bisection.predicates`."""

    kind: str
    source: str
    module: str = ""
    function: str = ""
    started: int = 0
    file: str = ""
    name: str = ""
    only_at: tuple[str, int, str] | tuple[()] = ()
    """The one place at which it is evaluated: file, line, function; empty: anywhere."""


@dataclass(frozen=True, slots=True)
class GetVerdict(PredicateQuery[tuple[Verdict, str]]):
    """The verdict and its reason."""

    tag = "judged"
    shape = (range(len(Verdict)), str)

    def _read(self, answer: Any) -> tuple[Verdict, str]:
        number, reason = answer
        return tuple(Verdict)[number], reason


@dataclass(frozen=True, slots=True)
class GetPartValue(PredicateQuery[str | None]):
    """The value of a part of the predicate's expression; None: it does not exist there."""

    tag = "value_of_part"
    shape = _TEXT_OR_NONE


@dataclass(frozen=True, slots=True)
class GetModuleValue(PredicateQuery[tuple[str, str]]):
    """The value of the expression as text, and why there is none; one of both is empty."""

    tag = "value_in_module"
    shape = (str, str)

    def _read(self, answer: Any) -> tuple[str, str]:
        text, reason = answer
        return text, reason


@dataclass(frozen=True, slots=True)
class JudgeEachLine(PredicateQuery[None]):
    """The predicate as the core evaluates it at each line of a run; it gives no answer of its own."""

    tag = "judging"
    shape = bytes
    finds: str = ""
    """`names` or `decided` to find the first line where its names, or a verdict, exist; empty: to find bad lines."""


@dataclass(frozen=True, slots=True)
class EvaluatePassages(Query[None]):
    """Expressions that the core evaluates at each passage of a run's breaks; there is no answer of its own."""

    tag = "passing"
    shape = bytes
    asked: tuple[tuple[str, str], ...]
    """For each break its condition and an expression to evaluate where that is true; empty: none."""


@dataclass(frozen=True, slots=True)
class EvaluateAtLines(Query[None]):
    """An evaluation by the core before some lines of a run; the text of a passage is the value's repr(), or a note why
    there is none."""

    tag = "at_lines"
    shape = bytes
    source: str
    """An expression with guards."""
    module: str
    """The module whose names it sees."""


@dataclass(frozen=True, slots=True)
class FindStores(Query[None]):
    """Find passages of a run's breaks that may store to places; the text of a passage has the numbers of those."""

    tag = "storing"
    shape = bytes
    places: tuple[tuple[tuple[int, int], ItemKey | None], ...]
    """For each place the address of the object that has it, with its type's, and the attribute or the key in it."""
    asked: tuple[tuple[tuple[int, str, str | None], ...], ...]
    """For each break its stores: the number of a place, and the expressions of the store's container and key."""


@dataclass(frozen=True, slots=True)
class FollowTasks(Query[None]):
    """Name the asyncio task at each passage of two breaks: where an event loop is about to run a callback, and where
    that has returned. The text of a passage has the key of the task, whether it is done, and its name."""

    tag = "following"
    shape = bytes
    stretch: int = 0
    """Keys of tasks that have none yet begin with this number. The id of a task will not do: where the program never
    asks for it, each process has another one."""
    keys: tuple[str, ...] = ()
    """The keys of all tasks, as a process answered GetTaskKeys at the same moment."""


@dataclass(frozen=True, slots=True)
class GetTaskKeys(Query[tuple[str, ...]]):
    """The keys of all tasks, done or not, in the collector's order, which is that of the run in each process; empty: a
    task has none yet. Asked where a run with FollowTasks ended."""

    tag = "task_keys"
    shape = ListOf(str)

    def _read(self, answer: Any) -> tuple[str, ...]:
        return tuple(answer)


QUERIES: dict[str, type[Query[Any]]] = {
    each.tag: each
    for each in (
        GetVariables,
        GetArguments,
        GetItems,
        Evaluate,
        ChangeProgram,
        FindVariable,
        FindObstacle,
        FindRows,
        FindEntry,
        GetSequence,
        GetTasks,
        GetTaskKeys,
        GetModules,
        GetCachedSource,
        GetModuleVariables,
        GetHandledExceptions,
        IsMutable,
        FindOpaqueType,
        GetContent,
        DescribeObject,
        ExportObject,
        FindExceptionTypes,
        GetSpans,
        MatchStores,
        FindWaitingStores,
        GetVerdict,
        GetPartValue,
        GetModuleValue,
    )
}
"""Every query that is answered, by its tag."""


def answer_shape(query: type[Query[Any]] | Query[Any]) -> object:
    """Return the shape of what the probe may send for a query."""
    return one_of(query.shape, _FAILED)
