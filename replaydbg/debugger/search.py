"""Finding breakpoints in both directions, and logging at a line over the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replaydbg.debugger.values import Breakpoint, Logged, Raised
from replaydbg.debugger.watchpoints import last_change, next_change
from replaydbg.engine.messages import Break, Run
from replaydbg.errors import AskFailed

if TYPE_CHECKING:
    from replaydbg.debugger.session import Session
    from replaydbg.engine.worker import Worker


@dataclass(frozen=True, slots=True)
class Found:
    """Where a search ended."""

    count: int
    why: str
    breakpoint: int
    message: str = ""


def forward(session: Session, last: int) -> Found | None:
    """Return the first breakpoint after here, up to the line `last`; None: there is none."""
    points = [each for each in session.breakpoints if each.enabled]
    raised = _next_raised(session, points, last)
    changed = next_change(session, points, raised.count if raised is not None else last)
    raised = _changed(changed) or raised
    lines = [each for each in points if _may_be_met(session, each)]
    if not lines:
        return raised
    limit = raised.count if raised is not None else last
    worker = session.cursor.clone()
    try:
        return _run_on(session, worker, lines, limit) or raised
    finally:
        worker.kill()


def on(session: Session, worker: Worker) -> Found | dict[str, Any] | None:
    """Let `worker` run to the next breakpoint, wherever that is; return it, or how the program ended."""
    points = [each for each in session.breakpoints if each.enabled and each.is_of_lines]
    return _until_one_is_met(session, worker, points, 0)


def backward(session: Session, first: int) -> Found | None:
    """Return the last breakpoint before here, down to the line `first`; None: there is none."""
    points = [each for each in session.breakpoints if each.enabled]
    raised = _last_raised(session, points, first)
    raised = _changed(last_change(session, points, raised.count if raised is not None else first)) or raised
    lines = [each for each in points if _may_be_met(session, each)]
    lowest = max(first, raised.count if raised is not None else first)
    upper = session.here.count - 1
    for begin in session.travel.timeline.earlier(session.here.count):
        if not lines or upper <= lowest - (raised is None):
            break
        if begin < upper:
            found = _last_between(session, lines, begin, upper)
            if found is not None and found.count >= lowest:
                return found
        upper = begin
    return raised


def _changed(found: tuple[int, Breakpoint] | None) -> Found | None:
    return Found(found[0], "watch", found[1].number, f"{found[1].place} has changed") if found is not None else None


def first_own(session: Session) -> int:
    """Return the count of the first line of the script, module or command that the program was started with."""
    header = session.header
    endings = {
        "script": (os.path.normpath(Path(header.cwd) / header.target),),
        "module": (header.target.replace(".", "/") + "/__main__.py", header.target.replace(".", "/") + ".py"),
        "command": ("<string>",),
    }.get(header.kind, (header.target.rstrip("/") + "/__main__.py",))
    bodies = [each.file for each in session.index.hits if each.function == "<module>"]
    file = next((each for ending in endings for each in bodies if each.endswith(ending)), None)
    if file is None:
        return 1
    worker = session.travel.at(1)
    try:
        order = Run(until=session.index.total, breaks=(Break(file=file, function="<module>"),))
        where = worker.run(order, idle=session.travel.idle)
        return 1 if isinstance(where, dict) or where.why != "break" else where.count
    finally:
        worker.kill()


def log(session: Session, file: str, line: int, expression: str, condition: str) -> Iterator[Logged]:
    """Yield what `expression` was at each passage of a line."""
    worker = session.travel.at(1)
    place = Break(file=file, line=line)
    try:
        while True:
            where = worker.run(Run(until=session.index.total, breaks=(place,)), idle=session.travel.idle)
            if isinstance(where, dict) or where.why != "break":
                return
            session.travel.idle()
            if condition and not session.holds(worker, condition):
                continue
            yield Logged(where.count, session.index.moment(where.count), where.lane, _text(session, worker, expression))
    finally:
        worker.kill()


def _text(session: Session, worker: Worker, expression: str) -> str:
    try:
        told = session.evaluate_at(worker, expression)
    except AskFailed as error:
        return f"<{error.reason}>"
    if told.error is not None:
        return f"<{told.error}>"
    return told.output + (told.value.text if told.value is not None else "")


# ---- lines ----


def _breaks(points: Sequence[Breakpoint], stop_at: int) -> tuple[Break, ...]:
    return tuple(Break(each.file, each.line, each.function, stop_at) for each in points)


def _may_be_met(session: Session, point: Breakpoint) -> bool:
    if not point.is_of_lines:
        return False
    if point.function:
        return True
    return point.line in session.index.lines_hit(point.file)


def _run_on(session: Session, worker: Worker, points: Sequence[Breakpoint], limit: int) -> Found | None:
    found = _until_one_is_met(session, worker, points, limit) if worker.count < limit else None
    return found if isinstance(found, Found) else None


def _until_one_is_met(
    session: Session, worker: Worker, points: Sequence[Breakpoint], limit: int
) -> Found | dict[str, Any] | None:
    left = {each.number: each.ignore for each in points}
    while not limit or worker.count < limit:
        where = worker.run(Run(until=limit, breaks=_breaks(points, 1)), idle=session.travel.idle)
        if isinstance(where, dict):
            return where
        if where.why != "break":
            return None
        # A passage that does not stop it takes too little time for `run` to ask whether to give up.
        session.travel.idle()
        for point, passages in zip(points, where.passages, strict=True):
            if passages.last != where.count or (point.condition and not session.holds(worker, point.condition)):
                continue
            if left[point.number] == 0:
                return Found(where.count, "breakpoint", point.number)
            left[point.number] -= 1
    return None


def _last_between(session: Session, points: Sequence[Breakpoint], begin: int, last: int) -> Found | None:
    """The last one that is met after the line `begin` and not after `last`."""
    plain = [each for each in points if not each.condition and not each.ignore]
    careful = [each for each in points if each.condition or each.ignore]
    best: Found | None = None
    if plain:
        where = session.travel.scan(begin, last, Run(breaks=_breaks(plain, 0)))
        for point, passages in zip(plain, where.passages, strict=True):
            if passages.last and (best is None or passages.last > best.count):
                best = Found(passages.last, "breakpoint", point.number)
    if careful:
        worker = session.travel.at(begin)
        try:
            while (found := _run_on(session, worker, careful, last)) is not None:
                if best is None or found.count > best.count:
                    best = found
        finally:
            worker.kill()
    return best


# ---- exceptions: where they are raised is known from the first pass ----


def _matches(points: Sequence[Breakpoint], raised: Raised) -> Breakpoint | None:
    name = raised.type.rpartition(".")[2]
    return next((each for each in points if each.exception in ("*", raised.type, name) and each.exception), None)


def _next_raised(session: Session, points: Sequence[Breakpoint], last: int) -> Found | None:
    for each in session.index.raised:
        point = _matches(points, each) if session.here.count < each.count <= last else None
        if point is not None:
            return _found(point, each)
    return None


def _last_raised(session: Session, points: Sequence[Breakpoint], first: int) -> Found | None:
    for each in reversed(session.index.raised):
        point = _matches(points, each) if first <= each.count < session.here.count else None
        if point is not None:
            return _found(point, each)
    return None


def _found(point: Breakpoint, raised: Raised) -> Found:
    text = f"{raised.type}: {raised.message}" if raised.message else raised.type
    return Found(raised.count, "exception", point.number, text)
