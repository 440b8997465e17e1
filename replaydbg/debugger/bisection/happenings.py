"""Predicates about events of the past, which the index of a recording answers without a probe."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from replaydbg.classes import dataclass
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.exception_types import raised_as
from replaydbg.debugger.line_inputs import run_to_raise
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Output, Raised
from replaydbg.debugger.source.source_files import is_library
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.reports import Where
from replaydbg.errors import UsageError

MOST_TRIED = 5000
"""The most exceptions that are checked for those of the program's own code: each takes less than a millisecond."""

FAR = 20_000
"""Lines: for a longer distance it is quicker to begin at a checkpoint."""


def resolved(predicate: Predicate, view: ReplayView) -> Predicate:
    """Return what a bare name that should raise means: an exception of the program's, or an expression.

    Raises UsageError for the name of an exception that the run does not know.
    """
    name = predicate.source.rpartition(".")[2]
    if predicate.kind != "raised" or view.types_named(predicate.source):
        return predicate
    # As exceptions are named; whatever else has such a name does not raise when it is looked up.
    if name[:1].isupper() or hasattr(builtins, predicate.source):
        raise UsageError(f"Unknown exception type: {predicate.source}.")
    return replace(predicate, kind="raises")


@dataclass(frozen=True, slots=True)
class Happening:
    """That something happened which a predicate of history asks for."""

    count: int
    """The line that did it."""
    last: int
    """The last line that ran before it: one that the line called, perhaps."""
    raised: Raised | None = None
    """The exception, if it is one."""


@dataclass(frozen=True, slots=True)
class Times:
    """When that happened which a predicate of history asks for."""

    found: tuple[Happening, ...]
    """In order."""
    note: str = ""
    """A note; may be empty."""


def times(predicate: Predicate, view: ReplayView, first: int, last: int, *, most: int) -> Times:
    """Return when it happened up to the line `last`: at most `most` exceptions from the line `first` on, or the first
    match in the output of the whole run.
    """
    if predicate.kind == "raised":
        return _times_raised(view, predicate.source, range(first, last + 1), most)
    pattern = re.compile(predicate.source.encode(), re.MULTILINE)
    matches = [
        _first_match(pattern, [each for each in view.index.output if each.stream == stream]) for stream in (1, 2)
    ]
    found = min((each for each in matches if each is not None), key=lambda each: each.count, default=None)
    return Times((found,) if found is not None and found.count <= last else ())


def _times_raised(view: ReplayView, name: str, lines: range, most: int) -> Times:
    """The exceptions of the program's own code, or else those of libraries."""
    # Exceptions before the program's own first line are the interpreter's.
    lines = range(max(lines.start, view.first_own), lines.stop)
    late = _raised_while_it_ended(view)
    raised = [each for each in raised_as(view, name) if each.count in lines and id(each) not in late]
    # A line may raise several.
    own: dict[int, Raised] = {}
    others: dict[int, Raised] = {}
    number, first_of_others = 0, ""
    for each, where in _positions_of(view, raised[:MOST_TRIED]):
        # The exception that ended the program counts as the program's own, wherever it was raised.
        if each.is_uncaught or not _is_of_library(each, where):
            own.setdefault(each.count, each)
            if len(own) == most:
                break
        elif not _is_of_start(where):
            others.setdefault(each.count, each)
            number += 1
            first_of_others = first_of_others or _place(where)
    notes = []
    often = "once" if number == 1 else f"{number:,} times"
    if own and others:
        before = "Before that," if most == 1 else "In addition,"
        notes.append(
            f"{before} {name} was raised {often} in libraries and imports; `catch {name}` in the prompt stops there."
        )
    elif others:
        notes.append(
            f"Your own code did not raise it there; libraries and imports raised it {often}, first{first_of_others}."
        )
    if len(raised) > MOST_TRIED and len(own) < most:
        notes.append(f"Checked the first {MOST_TRIED:,} of {len(raised):,}.")
    found = list((own or others).values())[:most]
    return Times(tuple(Happening(each.count, each.count, each) for each in found), " ".join(notes))


def _raised_while_it_ended(view: ReplayView) -> set[int]:
    """Return the identities of what was raised behind the exception that ended the program: while that was printed."""
    uncaught = view.index.uncaught
    line = view.index.raised_at(uncaught.count) if uncaught is not None else ()
    at = next((at for at, each in enumerate(line) if each.is_uncaught), len(line))
    return {id(each) for each in line[at + 1 :]}


def _place(where: Where) -> str:
    top = where.stack[0] if where.stack else None
    return f" in {top.file}:{top.line} {top.function}" if top is not None else ""


def _is_of_library(raised: Raised, where: Where) -> bool:
    """Whether a library raised it, and handles it as well, mostly."""
    frames = where.stack
    if raised.type == "ModuleNotFoundError":
        # The importer raises it for those who import.
        frames = tuple(each for each in frames if not each.file.startswith("<frozen importlib"))
    return not frames or is_library(frames[0].file)


def _positions_of(view: ReplayView, raised: Sequence[Raised]) -> Iterator[tuple[Raised, Where]]:
    """Yield each with the position where it is raised, or that of its line if it is in a library."""
    worker: EngineProcess | None = None
    passed = 0
    try:
        for each in raised:
            view.work.idle()
            if worker is None or not passed < each.count <= passed + FAR:
                if worker is not None:
                    worker.kill()
                worker = view.travel.at(each.count)
            else:
                view.travel.arrived(worker, each.count)
            where = worker.look()
            if where.stack and not is_library(where.stack[0].file):
                # The importer's frames run no lines that count: what it raises seems to be the importing line's.
                where = run_to_raise(view, worker, each) or where
            passed = where.count
            yield each, where
    finally:
        if worker is not None:
            worker.kill()


def _is_of_start(where: Where) -> bool:
    """Whether the interpreter was about to start the program there, and imported what it needs itself."""
    return any(each.file == "<frozen site>" or each.file.endswith("/site.py") for each in where.stack)


def _first_match(pattern: re.Pattern[bytes], pieces: list[Output]) -> Happening | None:
    """Return the line with whose output there was a match first."""
    text = b"".join(each.data for each in pieces)
    match = pattern.search(text)
    if match is None:
        return None
    ends = []
    end = 0
    for piece in pieces:
        end += len(piece.data)
        ends.append(end)
        if end >= match.end():
            break
    # A pattern takes as much as it can: what was printed may have matched long before the end of that.
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if pattern.search(text[: ends[middle]], 0) is not None:
            high = middle
        else:
            low = middle + 1
    return Happening(pieces[high].line or pieces[high].count, pieces[high].count)
