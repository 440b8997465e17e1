"""Flow of values in an expression, from its source and the instructions that its line executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replaydbg.classes import dataclass
from replaydbg.debugger.source.place_expressions import PlaceExpression, is_place, is_plain

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_SENT = (ast.Await, ast.Yield, ast.YieldFrom)
_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


SELF_EVIDENT = "the line changed the content of the object"
"""What is unknown of a line that can have changed an object in one way only: nothing that a reader would not see."""

# fmt: off
PURE = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate", "float",
    "format", "frozenset", "hex", "int", "len", "list", "max", "min", "oct", "ord", "pow", "range", "repr",
    "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "zip",
})
# fmt: on
"""Functions of C code whose answer comes from their arguments alone."""

_LOOKS = frozenset({"getattr", "hasattr", "hash", "id", "isinstance", "issubclass", "super"})
"""Other functions that change no object themselves."""

_MAKES = (ast.Call, ast.ListComp, ast.DictComp, ast.BinOp)
"""Expressions that make an object with items: an item that came with it is computed from them."""

TAKEN = "it was removed from another object; the origin of that item is not tracked"


class Span(NamedTuple):
    """The source span of an instruction; columns are counted in bytes, from 0."""

    line: int
    end_line: int
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Flow:
    """A part of an expression that a value comes from."""

    node: ast.expr
    kind: str
    """`constant`, `place` (a variable, an attribute or an item), `call`, `made`: a function; or `unknown`."""
    is_same: bool
    """Whether the value is that of this part itself, and not computed from it or taken out of it."""
    unknown: str = ""
    """The part of it that is unknown; empty: nothing is missing."""

    @property
    def text(self) -> str:
        """The part as it would be written."""
        return ast.unparse(self.node)


@dataclass(frozen=True, slots=True)
class StoredValue:
    """An expression whose value was stored."""

    value: ast.expr | None
    """None: it is not one of the line, or not known."""
    is_same: bool
    """Whether the value itself was stored, and not one computed from it or taken out of it."""
    old: ast.expr | None = None
    """Of an augmented assignment: the place whose old value it is computed from, too."""
    unknown: str = ""
    """The part that is unknown; empty: nothing is missing."""


class Executed:
    """The source of the instructions that a frame executed, in order."""

    def __init__(self, spans: Sequence[Span], code: Sequence[Span] = ()) -> None:
        """`spans`: of what was executed; `code`: of all instructions."""
        self._code = code
        self._spans = tuple(dict.fromkeys(spans))
        self._last = {each: at for at, each in enumerate(spans)}

    def has(self, node: ast.AST) -> bool:
        """Whether an instruction of a part of the source was executed."""
        begin, end = _begin(node), _end(node)
        return any(
            begin <= (each.line, each.column) and (each.end_line, each.end_column) <= end for each in self._spans
        )

    def last(self, node: ast.AST) -> int:
        """Return when the instruction of just this part was executed last; -1: it was not."""
        (line, column), (end_line, end_column) = _begin(node), _end(node)
        return self._last.get(Span(line, end_line, column, end_column), -1)

    def has_begun(self, statement: ast.AST) -> bool:
        """Whether the first instruction of a statement was executed: nothing of it is missing before."""
        begin, end = _begin(statement), _end(statement)
        first = next(
            (
                each
                for each in self._code
                if begin <= (each.line, each.column) and (each.end_line, each.end_column) <= end and each.end_column
            ),
            None,
        )
        return first is None or first in self._last


def _begin(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def statements_at(tree: ast.AST, line: int) -> list[ast.stmt]:
    """Return the statements that a line runs, inner ones first: a compound one runs with its header alone."""
    around = [each for each in ast.walk(tree) if isinstance(each, ast.stmt) and _is_around(each, line)]
    inner = [each for each in around if not any(_is_inside(other, each) for other in around)]
    outer = [each for each in around if each not in inner and not isinstance(each, _SCOPES)]
    return [*inner, *(each for each in outer if header_of(each)[0] <= line <= header_of(each)[1])]


def _is_around(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or 0)


def _is_inside(inner: ast.stmt, outer: ast.stmt) -> bool:
    is_within = _begin(outer) <= _begin(inner) and _end(inner) <= _end(outer)
    return inner is not outer and is_within


def header_of(statement: ast.stmt) -> tuple[int, int]:
    """Return the first and the last line of a statement, without the statements in it."""
    body = [each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)]
    last = min((each.lineno - 1 for each in body), default=statement.end_lineno or statement.lineno)
    return statement.lineno, max(last, statement.lineno)


def own_parts(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and the parts of it that run with it: neither statements in it, nor functions' bodies."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending += [each for each in ast.iter_child_nodes(node) if not isinstance(each, (ast.stmt, *_SCOPES))]


# ---- the store ----


def stored(statements: Sequence[ast.stmt], place: PlaceExpression, executed: Executed) -> StoredValue:
    """Return what was stored to a place by the statements of a line."""
    found = [pair for each in statements for pair in _targets(each) if _may_be(pair[0], place)]
    ran = sorted((pair for pair in found if executed.last(pair[0]) >= 0), key=lambda pair: executed.last(pair[0]))
    # Two stores in a row may be one instruction, which is known by the first.
    if not ran and len(found) == 1:
        ran = found
    if not found and len(place.steps) == 1 and (value := _bound_by(statements, place, executed)) is not None:
        item = _item_of_display(value, place)
        if item is not None:
            return StoredValue(item, True)
        if isinstance(value, _MAKES):
            return StoredValue(value, False)
    if not ran:
        return StoredValue(None, False, unknown=content_change(statements))
    target, node = ran[-1]
    statement = next((each for each in statements if any(part is target for part in ast.walk(each))), None)
    if statement is None or not executed.has_begun(statement):
        return _stored_later(target, node)
    if place.steps and len({ast.unparse(target) for target, _ in ran}) > 1:
        return StoredValue(None, False, unknown="which assignment of the line wrote it is unknown")
    return _stored(target, node)


def content_change(statements: Sequence[ast.stmt]) -> str:
    """Return what is unknown of a line that changed the content of an object without an assignment."""
    calls = [node for each in statements for node in own_parts(each) if isinstance(node, ast.Call)]
    names = [ast.unparse(each.func) for each in calls]
    names = [f"{each}()" for each in dict.fromkeys(names) if each not in PURE | _LOOKS]
    if len(names) < 2:
        return SELF_EVIDENT
    return f"which of the calls changed it is unknown: {', '.join(names)}; go there and `step` to see"


def _stored_later(target: ast.expr, node: ast.AST) -> StoredValue:
    """Return what was stored by a statement that had begun before its line."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return _item_of_loop(node) if is_place(node.iter) else StoredValue(None, False, unknown=_of_loop(node))
    return StoredValue(
        None, False, unknown="the statement waited before it wrote; what it did until then is not tracked"
    )


def _item_of_loop(node: ast.For | ast.AsyncFor) -> StoredValue:
    """Return what a loop stored: an item of what it had when it began, which may be something else by now."""
    is_kept = not _is_stored_in(node.iter, node.body)
    return StoredValue(node.iter if is_kept else None, False, unknown=_of_loop(node))


def _of_loop(node: ast.For | ast.AsyncFor) -> str:
    further = "; which line put it in is not tracked" if is_place(node.iter) else ", which is not tracked further"
    return f"it is an item of {ast.unparse(node.iter)}{further}"


def _is_stored_in(place: ast.expr, body: Sequence[ast.stmt]) -> bool:
    """Whether statements may store to a variable or an attribute that a place goes through."""
    names = {_name_of(each) for each in ast.walk(place)} - {""}
    stored_to = (
        each for statement in body for each in ast.walk(statement) if isinstance(each, (ast.Name, ast.Attribute))
    )
    return any(isinstance(each.ctx, ast.Store) and _name_of(each) in names for each in stored_to)


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _bound_by(statements: Sequence[ast.stmt], place: PlaceExpression, executed: Executed) -> ast.expr | None:
    """Return what a line bound the variable of a place to, where it did so just once."""
    made = [each for each in statements if isinstance(each, ast.Assign) and executed.has_begun(each)]
    made = [each for each in made if [ast.unparse(target) for target in each.targets] == [place.name]]
    return made[0].value if len(made) == 1 else None


def _item_of_display(value: ast.expr, place: PlaceExpression) -> ast.expr | None:
    """Return the item that a list, a tuple or a dictionary was made with."""
    last = place.steps[-1]
    if isinstance(value, (ast.List, ast.Tuple)) and last.index is not None:
        is_plain = not any(isinstance(each, ast.Starred) for each in value.elts)
        return value.elts[last.index] if is_plain and -len(value.elts) <= last.index < len(value.elts) else None
    if isinstance(value, ast.Dict):
        wanted = last.item
        if all(isinstance(each, ast.Constant) for each in value.keys):
            pairs = zip(value.keys, value.values, strict=True)
            return next(
                (one for key, one in reversed(list(pairs)) if isinstance(key, ast.Constant) and key.value == wanted),
                None,
            )
    return None


def stored_before(statements: Sequence[ast.stmt], read: ast.Name, executed: Executed) -> StoredValue | None:
    """Return what the line itself had stored to a variable before it read it; None: it had not."""
    at = executed.last(read)
    found: list[tuple[int, tuple[int, int], ast.expr, ast.AST]] = []
    for target, node in (pair for each in statements for pair in _targets(each)):
        if not isinstance(target, ast.Name) or target.id != read.id or isinstance(node, (ast.For, ast.AsyncFor)):
            continue
        ran = executed.last(target)
        # If two instructions are one, the order of the source decides.
        is_before = 0 <= ran < at if at >= 0 and ran >= 0 else _end(node) <= _begin(read)
        if is_before:
            found.append((ran, _begin(target), target, node))
    if not found:
        return None
    _, _, target, node = max(found, key=lambda each: each[:2])
    return _stored(target, node)


def _targets(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield each target of a statement, with the statement or the part of it that stores."""
    for node in own_parts(statement):
        if isinstance(node, ast.Assign):
            roots: list[ast.expr] = list(node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor)):
            roots = [node.target]
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            roots = [node.optional_vars]
        else:
            continue
        for root in roots:
            for each in ast.walk(root):
                if isinstance(each, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(each.ctx, ast.Store):
                    yield each, node


def _may_be(target: ast.expr, place: PlaceExpression) -> bool:
    if not place.steps:
        return isinstance(target, ast.Name) and target.id == place.name
    last = place.steps[-1]
    if last.attribute is not None:
        return isinstance(target, ast.Attribute) and target.attr == last.attribute
    if not isinstance(target, ast.Subscript):
        return False
    if not isinstance(target.slice, ast.Constant):
        return True
    return not is_plain(target.slice.value) if last.entry is not None else target.slice.value == last.item


def _stored(target: ast.expr, node: ast.AST) -> StoredValue:
    if isinstance(node, ast.NamedExpr):
        return StoredValue(node.value, True)
    if isinstance(node, ast.AugAssign):
        return StoredValue(node.value, False, old=node.target)
    if isinstance(node, ast.AnnAssign):
        return StoredValue(node.value, True)
    if isinstance(node, ast.Assign):
        root = next(each for each in node.targets if any(part is target for part in ast.walk(each)))
        return _unpacked(root, node.value, target)
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return _item_of_loop(node)
    assert isinstance(node, ast.withitem), node
    return StoredValue(node.context_expr, False, unknown="the result of __enter__ is not tracked")


def _unpacked(root: ast.expr, value: ast.expr, target: ast.expr) -> StoredValue:
    """Return what a target among several got."""
    if root is target:
        return StoredValue(value, True)
    if isinstance(root, ast.Starred):
        return StoredValue(value, False, unknown=TAKEN)
    displays = (ast.Tuple, ast.List)
    if isinstance(root, displays) and isinstance(value, displays) and len(root.elts) == len(value.elts):
        pairs = list(zip(root.elts, value.elts, strict=True))
        if not any(isinstance(each, ast.Starred) for pair in pairs for each in pair):
            part, given = next(pair for pair in pairs if any(each is target for each in ast.walk(pair[0])))
            return _unpacked(part, given, target)
    return StoredValue(value, False, unknown=TAKEN)


# ---- the flow ----


def flows(node: ast.expr, executed: Executed, *, is_same: bool = True) -> Iterator[Flow]:
    """Yield what the value of an expression comes from: calls with their arguments are one part each."""
    if isinstance(node, ast.Constant):
        yield Flow(node, "constant", is_same)
    elif isinstance(node, ast.Name) or (isinstance(node, (ast.Attribute, ast.Subscript)) and is_place(node)):
        yield Flow(node, "place", is_same)
    elif isinstance(node, ast.NamedExpr):
        yield from flows(node.value, executed, is_same=is_same)
    elif isinstance(node, ast.IfExp):
        yield from _of_choice(node, executed, is_same)
    elif isinstance(node, ast.BoolOp):
        # The operand that ran last is the value: those before were only tested.
        ran = [each for each in node.values if executed.has(each)]
        yield from flows(ran[-1] if ran else node.values[0], executed, is_same=is_same)
    elif isinstance(node, ast.Call):
        yield Flow(node, "call", is_same)
    elif isinstance(node, ast.Lambda):
        yield Flow(node, "made", is_same)
    elif isinstance(node, _SENT):
        yield Flow(node, "unknown", False, "values received while waiting are not tracked")
    elif isinstance(node, _LOOPS):
        yield Flow(node, "unknown", False, "comprehensions are not tracked inside")
    else:
        yield from _computed(node, executed)


def _of_choice(node: ast.IfExp, executed: Executed, is_same: bool) -> Iterator[Flow]:
    ran = [each for each in (node.body, node.orelse) if executed.has(each)]
    if len(ran) == 1:
        yield from flows(ran[0], executed, is_same=is_same)
        return
    yield Flow(node, "unknown", False, "the branch that ran is unknown")


def _computed(node: ast.expr, executed: Executed) -> Iterator[Flow]:
    """Operators, displays, formatted texts, slices, and parts of what is computed."""
    parts: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Compare):
        parts = [node.left, *(each for each in node.comparators if executed.has(each))]
    number = 0
    for each in parts:
        inner = each.value if isinstance(each, (ast.FormattedValue, ast.Starred)) else each
        if isinstance(inner, ast.Slice) and not list(ast.iter_child_nodes(inner)):
            continue  # `[:]` is of no value
        if isinstance(inner, ast.expr):
            number += 1
            yield from flows(inner, executed, is_same=False)
    if not number:
        yield Flow(node, "constant", False)
