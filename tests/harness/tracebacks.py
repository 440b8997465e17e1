"""Tracebacks that pytest can show."""

from __future__ import annotations

from types import TracebackType


def add_missing_lines(raised: BaseException | None) -> None:
    """Give each entry without a line its function's first one; in what caused the exception, too.

    The jump back of a loop may have no line, and a timeout that comes there raises at it. pytest counts with the line,
    and would end the whole session with an internal error instead of naming the test.
    """
    seen = set()
    while raised is not None and id(raised) not in seen:
        seen.add(id(raised))
        raised.__traceback__ = _with_lines(raised.__traceback__)
        raised = raised.__cause__ or raised.__context__


def line_of(entry: TracebackType) -> int | None:
    """Return its line, which need not be known."""
    return entry.tb_lineno


def _with_lines(first: TracebackType | None) -> TracebackType | None:
    entries = []
    entry = first
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    if all(line_of(each) is not None for each in entries):
        return first
    made = None
    for each in reversed(entries):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, line_of(each) or each.tb_frame.f_code.co_firstlineno)
    return made
