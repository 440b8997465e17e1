"""Origins of a written value: the operands of the line that wrote it, traced through the calls it made.

The line runs once more, and the core reports the instructions that its frame executes, its calls and the events that
they asked for (path.c). The source shows the flow of values; the instructions show which branches ran, what each call
returned and which call asked for an event. An event of the same line whose answer flows elsewhere is not an origin.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import LastWrite, Origin
from replaydbg.debugger.source.data_flow import (
    PURE,
    Executed,
    Flow,
    Span,
    StoredValue,
    content_change,
    flows,
    header_of,
    statements_at,
    stored,
    stored_before,
)
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import NEXT, RunOrder
from replaydbg.engine.queries import GetArguments, GetSpans
from replaydbg.engine.reports import Frame, PathCall, PathEvent, Where
from replaydbg.errors import AskFailed, EngineLost

DEEPEST = 4
"""The depth of nested calls whose results are traced."""

MOST_BEGINNINGS = 12
"""The most lines to go back to the beginning of a statement, a few milliseconds each."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The known origins of a value."""

    found: tuple[Origin, ...]
    unknown: str
    """The part that is unknown; empty: nothing."""


@dataclass(frozen=True, slots=True)
class _Step:
    """The execution of a frame from one line of a statement."""

    statements: tuple[ast.stmt, ...]
    """Those of its line."""
    executed: Executed
    calls: tuple[tuple[Span, PathCall], ...]
    events: tuple[tuple[Span, PathEvent], ...]
    is_cut: bool


def origins_of(view: ReplayView, place: PlaceExpression, origin: LastWrite, started: int, seen: int) -> Origins:
    """Return the origins of the value that `origin` wrote.

    `started`: of an argument, when the activation began that it was passed to. `seen`: the line before which the value
    was there; 0: it is there at the current position.
    """
    if origin.moment is None or not origin.after:
        return Origins((), "")
    finder = _Finder(view)
    if not origin.is_binding and not place.steps and not origin.is_equal:
        return Origins((), content_change(finder.statements(origin.file, origin.line)))
    try:
        return (
            finder.of_argument(place, origin, started) if origin.is_argument else finder.of_store(place, origin, seen)
        )
    except (AskFailed, EngineLost) as error:
        return Origins((), f"the line could not be replayed: {error}")


@lru_cache(8)
def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


@dataclass(slots=True)
class _Finder:
    view: ReplayView
    unknown: list[str] = field(default_factory=list)

    def of_store(self, place: PlaceExpression, origin: LastWrite, seen: int) -> Origins:
        statements = self.statements(origin.file, origin.line)
        step = self._step(origin.count, statements, seen)
        if step is None:
            return Origins((), "source not available")
        found = stored(statements, place, step.executed)
        return self._all(list(self._of_stored(found, step, True, DEEPEST)))

    def of_argument(self, place: PlaceExpression, origin: LastWrite, started: int) -> Origins:
        step = self._step(origin.count, self.statements(origin.file, origin.line), started)
        passed = next((pair for pair in step.calls if pair[1].started == started), None) if step is not None else None
        if step is None or passed is None:
            return Origins((), "the call that passed it is unknown")
        call = self._call_at(origin.file, passed[0])
        top = self._frame_of(passed[1])
        if call is None or top is None or not (passed[1].is_direct or top.name == "__init__"):
            return Origins((), "it was passed by C code, which is not tracked")
        given = self._argument(call, place.name, started)
        if given is None:
            names = [each for each in (*call.args, *(each.value for each in call.keywords))]
            self.unknown.append("which argument of the call it was is unknown")
            return self._all([one for each in names for one in self._origins(each, step, False, DEEPEST)])
        return self._all(list(self._origins(given, step, True, DEEPEST)))

    def _all(self, origins: Sequence[Origin]) -> Origins:
        return Origins(tuple(dict.fromkeys(origins)), self.unknown[0] if self.unknown else "")

    # ---- one statement ----

    def statements(self, file: str, line: int) -> list[ast.stmt]:
        tree = _parsed(self.view.sources.text(file))
        return statements_at(tree, line) if tree is not None else []

    def _call_at(self, file: str, span: Span) -> ast.Call | None:
        for statement in self.statements(file, span.end_line):
            for each in ast.walk(statement):
                if isinstance(each, ast.Call) and (each.end_lineno, each.end_col_offset) == span[1::2]:
                    return each
        return None

    def _step(self, count: int, statements: Sequence[ast.stmt], until: int) -> _Step | None:
        """Run the statement of the line `count` again, up to the next line of its caller or its own.

        It goes no further than the line `until`, or the current position: later stores are of other values.
        """
        if not statements:
            return None
        begin = self._beginning(count, statements)
        with closing(self.view.travel.at(begin)) as worker:
            top = _top(worker)
            if top is None:
                return None
            spans = [Span(*each) for each in worker.ask(GetSpans(), idle=self.view.work.idle)]
            lane = worker.look().lane
            ways = []
            while worker.count < count:
                ways.append(worker.run(RunOrder(rule=NEXT, lane=lane, until=count, follows_path=True), idle=self._idle))
            here = self.view.here
            point = here.moment.point if not until or until > here.count else 0
            last = min(until or here.count, here.count)
            order = RunOrder(rule=NEXT, lane=lane, until=last, point=point, follows_path=True)
            ways.append(worker.run(order, idle=self._idle))
        paths = [each.path for each in ways if isinstance(each, Where)]
        if len(paths) < len(ways):
            return None  # the program ended in this line
        units = [unit for each in paths for unit in each.units]
        calls = [each for path in paths for each in path.calls]
        events = [each for path in paths for each in path.events]
        most = max([*units, *(each.unit for each in calls), *(each.unit for each in events)], default=0)
        if most >= len(spans):
            return None
        return _Step(
            tuple(statements),
            Executed([spans[each] for each in units], spans),
            tuple((spans[each.unit], each) for each in calls),
            tuple((spans[each.unit], each) for each in events),
            any(each.is_cut for each in paths),
        )

    def _idle(self) -> None:
        self.view.travel.idle()

    def _frame_at(self, count: int) -> Frame:
        return self.view.look_at(count).stack[0]

    def _beginning(self, count: int, statements: Sequence[ast.stmt]) -> int:
        """Return the count at which the line began: a statement may spread over several lines, or come back to one."""
        first = min(header_of(each)[0] for each in statements)
        last = max(header_of(each)[1] for each in statements)
        stood = self._frame_at(count)
        begin = count
        for _ in range(MOST_BEGINNINGS):
            if not stood.before:
                break
            before = self._frame_at(stood.before)
            # A statement goes through its instructions in order: one from further down was of another round.
            if before.started != stood.started or not first <= before.line <= last or before.unit >= stood.unit:
                break
            begin, stood = stood.before, before
        return begin

    # ---- what a value came from ----

    def _origins(self, node: ast.expr, step: _Step, is_same: bool, depth: int) -> Iterator[Origin]:
        if step.is_cut:
            self.unknown.append("the line did too much to be tracked")
        for each in flows(node, step.executed, is_same=is_same):
            if each.unknown:
                self.unknown.append(each.unknown)
            if each.kind == "unknown":
                continue
            if each.kind == "call" and isinstance(each.node, ast.Call):
                yield from self._of_call(each, each.node, step, depth)
            elif each.kind == "place" and not isinstance(each.node, ast.Name):
                yield from self._of_place(each, step, depth)
            elif isinstance(each.node, ast.Name) and (
                before := stored_before(step.statements, each.node, step.executed)
            ):
                yield from self._of_stored(before, step, each.is_same, depth)
            else:
                yield Origin(each.text, each.kind, each.is_same)

    def _of_stored(self, found: StoredValue, step: _Step, is_same: bool, depth: int) -> Iterator[Origin]:
        """Yield origins of a value that the line itself stored: by an earlier statement, or an earlier part."""
        if found.unknown:
            self.unknown.append(found.unknown)
        for node, is_value in ((found.value, found.is_same), (found.old, False)):
            if node is not None and depth:
                yield from self._origins(_loaded(node), step, is_same and is_value, depth - 1)
        if not depth:
            self.unknown.append("the line did too much to be tracked")

    def _of_place(self, flow: Flow, step: _Step, depth: int) -> Iterator[Origin]:
        """An attribute or an item: a function of the program may compute it."""
        calls = [call for span, call in step.calls if _is_at(span, flow.node)]
        if not calls:
            events = _asked(step, flow.node)
            yield Origin(flow.text, "place", flow.is_same, events=events)
        elif len(calls) == 1 and calls[0].returned >= 0 and self._computes(calls[0], flow.node):
            yield self._returned(flow, calls[0], depth)
        else:
            self.unknown.append(f"the code that computes {flow.text} is not tracked")
            yield Origin(flow.text, "place", False)

    def _computes(self, called: PathCall, node: ast.expr) -> bool:
        """Whether a function that ran makes the attribute or the item: others only compare keys or look it up."""
        frame = self._frame_of(called)
        if frame is None or called.is_direct:
            return frame is not None
        if isinstance(node, ast.Attribute):
            return frame.name in (node.attr, "__getattr__", "__getattribute__", "__get__")
        return frame.name in ("__getitem__", "__missing__", "__class_getitem__")

    def _of_call(self, flow: Flow, call: ast.Call, step: _Step, depth: int) -> Iterator[Origin]:
        calls = [each for span, each in step.calls if _ends_at(span, call)]
        direct = [each for each in calls if each.is_direct]
        called = direct[-1] if direct else calls[0] if len(calls) == 1 else None
        frame = self._frame_of(called) if called is not None else None
        if called is not None and frame is not None and self._is_the_function(call, called, frame):
            if called.returned < 0:
                self.unknown.append(f"{_name(call)}() returned a generator or nothing, which is not tracked")
                yield Origin(flow.text, "call", flow.is_same)
            else:
                yield self._returned(flow, called, depth)
            return
        events = _asked(step, call)
        inner: list[Origin] = []
        if isinstance(call.func, ast.Name) and call.func.id in PURE and not calls and not events:
            for each in _operands(call):
                inner += self._origins(each, step, False, depth)
        elif not events and (frame is None or frame.name != "__init__"):
            self.unknown.append(f"{_name(call)}() is not tracked inside C code")
        yield Origin(flow.text, "call", flow.is_same, events=events, parts=tuple(inner))

    def _is_the_function(self, call: ast.Call, called: PathCall, frame: Frame) -> bool:
        """Whether what the call returned is what the function returned that ran."""
        if frame.name in ("__init__", "__new__", "__post_init__", "__set_name__", "__del__"):
            return False
        if called.is_direct:
            return True
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        return (name == frame.name and not hasattr(builtins, name)) or frame.name == "__call__"

    def _frame_of(self, called: PathCall) -> Frame | None:
        with closing(self.view.travel.at(called.started)) as worker:
            top = _top(worker)
        return top if top is not None and top.started == called.started else None

    def _returned(self, flow: Flow, called: PathCall, depth: int) -> Origin:
        """Return the origin of a value that a function of the program returned."""
        view = self.view
        with closing(view.travel.at(called.last)) as worker:
            top = _top(worker)
        origin = Origin(flow.text, "call", flow.is_same)
        if top is None or top.started != called.started:
            self.unknown.append(f"where {flow.text} returned is unknown")
            return origin
        origin = replace(
            origin,
            count=called.last,
            moment=view.index.moment(called.last),
            file=top.file,
            line=top.line,
            function=top.function,
            source=view.source_line(top.file, top.line),
        )
        statements = self.statements(top.file, top.line)
        step = self._step(called.last, statements, 0) if depth > 1 else None
        value = _returned_value(statements, step) if step is not None else None
        if value is None or step is None:
            self.unknown.append(f"the result of {flow.text} is not tracked further")
            return origin
        return replace(origin, parts=tuple(self._origins(value, step, True, depth - 1)))

    # ---- arguments ----

    def _argument(self, call: ast.Call, name: str, started: int) -> ast.expr | None:
        """Return the argument of a call that became the parameter `name`; None: unknown."""
        by_name = next((each.value for each in call.keywords if each.arg == name), None)
        if by_name is not None:
            return by_name
        if any(isinstance(each, ast.Starred) for each in call.args):
            return None
        with closing(self.view.travel.at(started)) as worker:
            top = _top(worker)
            arguments = worker.ask(GetArguments(has_texts=False), idle=self.view.work.idle)
        names = [each.name for each in arguments]
        if top is None or name not in names:
            return None
        is_method = isinstance(call.func, ast.Attribute) and names[0] in ("self", "cls")
        at = names.index(name) - (is_method or top.name == "__init__")
        if at < 0 and isinstance(call.func, ast.Attribute):
            return call.func.value
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        is_known = called == top.name or top.name == "__init__"
        return call.args[at] if is_known and 0 <= at < len(call.args) else None


def _top(worker: EngineProcess) -> Frame | None:
    stack = worker.look().stack
    return stack[0] if stack else None


def _loaded(node: ast.expr) -> ast.expr:
    """Return it as what is read there: the target of an augmented assignment is a place as well."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        loaded: ast.expr = ast.parse(ast.unparse(node), mode="eval").body
        return loaded
    return node


def _is_at(span: Span, node: ast.AST) -> bool:
    begin = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
    return begin == (span.line, span.column) and _ends_at(span, node)


def _ends_at(span: Span, node: ast.AST) -> bool:
    """Whether an instruction is that of a call: only one ends at each bracket."""
    return (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)) == (span.end_line, span.end_column)


def _asked(step: _Step, node: ast.AST) -> tuple[int, ...]:
    """Return the events that C code asked for which an expression called."""
    return tuple(event.number for span, event in step.events if event.is_direct and _ends_at(span, node))


def _operands(call: ast.Call) -> list[ast.expr]:
    receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    given = [each.value if isinstance(each, ast.Starred) else each for each in call.args]
    return [*receiver, *given, *(each.value for each in call.keywords)]


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func)


def _returned_value(statements: Sequence[ast.stmt], step: _Step) -> ast.expr | None:
    """Return the expression that a statement returned; of a lambda, its body."""
    found = [each for each in statements if isinstance(each, ast.Return) and each.value is not None]
    ran = [each for each in found if step.executed.has(each)] or found
    return ran[0].value if len(ran) == 1 and step.executed.has_begun(ran[0]) else None
