"""Lines that no other thread can notice: they compute with numbers and texts in variables of their own call alone.

A schedule in which a thread is preempted after such a line ends as the one does in which it is preempted before it (the
simplest case of partial-order reduction; P. Godefroid, Partial-Order Methods for the Verification of Concurrent
Systems, 1996). Python may run a method for any operator, so a line is one of these only where the values are known to
be plain when it begins.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from replaydbg.classes import NamedTuple
from replaydbg.futures.schedules.decisions import PreemptionPoint
from replaydbg.log.sources import source_text

_PARTS = (
    ast.Name,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)
"""The parts of expressions whose values are plain if those of their variables are."""


class _Needs(NamedTuple):
    """The variables that must be plain for a line to be local."""

    read: frozenset[str]
    written: frozenset[str]

    def __or__(self, other: _Needs) -> _Needs:
        return _Needs(self.read | other.read, self.written | other.written)


_NOTHING = _Needs(frozenset(), frozenset())


class LocalLines:
    """Tells of points at which a thread could be preempted whether its next line is local."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        """`sources`: of the program, by path."""
        self._sources = sources
        self._modules: dict[str, _Module] = {}

    def begins(self, point: PreemptionPoint) -> bool:
        """Whether no other thread can notice the line that is about to run."""
        file = point.at.file
        if file not in self._modules:
            self._modules[file] = _Module(self._sources.get(file, b""))
        return self._modules[file].is_local(point)

    def is_same_as_before(self, before: PreemptionPoint, point: PreemptionPoint) -> bool:
        """Whether a preemption here ends as one at the point before: a local line of the same call lies between."""
        is_next = (point.lane, point.marks, point.ticks) == (before.lane, before.marks, before.ticks + 1)
        is_here = (point.at.file, point.at.function, point.ready) == (before.at.file, before.at.function, before.ready)
        return is_next and is_here and self.begins(before)


class _Module:
    """The lines of one source file."""

    def __init__(self, data: bytes) -> None:
        try:
            tree = ast.parse(source_text(data))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.Module([], [])
        bound = Counter(_bound_names(tree))
        self._has_range = not bound["range"] and not bound["*"]
        self._constants = {each for each in _assigned_constants(tree) if bound[each] == 1}
        self._needs: dict[int, _Needs | None] = {}
        """By the number of a line; None: it can never be local."""
        for statement in ast.walk(tree):
            if isinstance(statement, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                needs = self._needs_of(statement)
                for line in _own_lines(statement):
                    known = self._needs.get(line, _NOTHING)
                    self._needs[line] = known | needs if known is not None and needs is not None else None

    def is_local(self, point: PreemptionPoint) -> bool:
        """Whether no other thread can notice the line at which the point is."""
        needs = self._needs.get(point.at.line)
        if needs is None:
            return False
        return needs.written <= point.plain and needs.read <= point.plain | (point.plain_globals & self._constants)

    def _needs_of(self, statement: ast.AST) -> _Needs | None:
        """Return what a statement needs, without statements in it; None: it may do what another thread can notice."""
        match statement:
            case ast.Pass():
                return _NOTHING
            case ast.If(test=read) | ast.While(test=read) | ast.Expr(value=read):
                return _needs(read)
            case ast.AugAssign(op=ast.MatMult()):
                return None
            case ast.AugAssign(target=target, value=read) | ast.AnnAssign(target=target, value=ast.expr() as read):
                return _needs(read, target)
            case ast.Assign(targets=targets, value=read):
                return _needs(read, *targets)
            case ast.For(target=target, iter=ast.Call(func=ast.Name("range"), args=args, keywords=[])):
                return _needs(ast.BoolOp(ast.And(), args), target) if self._has_range else None
        return None


def _needs(read: ast.expr, *written: ast.expr) -> _Needs | None:
    parts = list(ast.walk(read))
    names = [each.id for each in written if isinstance(each, ast.Name)]
    if len(names) < len(written) or not all(isinstance(each, _PARTS) for each in parts):
        return None
    return _Needs(frozenset(each.id for each in parts if isinstance(each, ast.Name)), frozenset(names))


def _own_lines(statement: ast.AST) -> range:
    """Return the lines of a statement without those of the block in it."""
    whole = statement.pattern if isinstance(statement, ast.match_case) else statement
    first, last = getattr(whole, "lineno", 0), getattr(whole, "end_lineno", 0)
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        last = max(first, min(last, body[0].lineno - 1))
    return range(min([first, *(each.lineno for each in getattr(statement, "decorator_list", ()))]), last + 1)


def _assigned_constants(tree: ast.Module) -> Iterator[str]:
    """Yield the variables of the module that it gives a number or a text, not in a loop or a condition."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant()):
                yield name


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Yield each name once for each place at which something in the module binds it, in whatever scope."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler(name=str()):
                yield str(node.name)
            case ast.arg(arg=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
