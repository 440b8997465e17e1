"""The part of a run that is of interest: without imports at its start, and without the runner of a test."""

from __future__ import annotations

import ast

from replaydbg.debugger import Session


def extent_of(session: Session) -> tuple[int, int]:
    """Return the first and the last line of the run that a timeline shows, as counts; the session is at the failure."""
    return _test(session) or (_begins(session), session.index.total)


def _test(session: Session) -> tuple[int, int] | None:
    """Return the start and end of the test, in a recording of one: the runner's own code would fill the timeline."""
    test = session.test
    first = test.marks_in(session.index).get("test") if test is not None else None
    if first is None or session.here.why != "exception" or session.here.count <= first:
        return None
    last = session.here.count
    return first, min(last + (last - first) // 20 + 1, session.index.total)


def _begins(session: Session) -> int:
    """Return the line of the run after the imports at the program's start: they would fill most of a short run."""
    first = session.first_own
    worker = session.travel.at(first)
    try:
        top = worker.look().stack[:1]
    finally:
        worker.kill()
    line = _behind_imports("\n".join(session.sources.lines(top[0].file))) if top else 0
    found = next(session.run.passages(top[0].file, line), None) if line else None
    return max(session.index.count(found), first) if found is not None else first


def _behind_imports(text: str) -> int:
    """Return the first line of a module after its imports; 0: unknown."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    for node in body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, (ast.Import, ast.ImportFrom)):
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            return min([node.lineno, *(each.lineno for each in decorators)])
    return 0
