"""Find what a test used of earlier tests that were left out of its recording: if values differ, these tests stay in.

A replay that agrees has made the same requests and printed the same. That does not cover values that stay inside. So
the snapshot taken when the test failed is compared with the heap at that point of a replay without those tests: all
objects that can be reached from the frames of the traceback, and from the modules that the test may have used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from replaydbg.debugger import Session
from replaydbg.debugger.object_history import holdings
from replaydbg.debugger.session_results import Moment
from replaydbg.debugger.source.source_files import is_library
from replaydbg.engine.protocol import Break, RunOrder
from replaydbg.engine.reports import EndReport, Frame
from replaydbg.errors import ReplaydbgError
from replaydbg.heap.comparison.diff_results import Change
from replaydbg.heap.comparison.drift import drift
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.masked_snapshot import masked_snapshot_of

_MOST = 3
"""Maximum number of values that are named."""

_PLUGIN = "/pytest_plugin/child/recorded.py"
_SEES = "_see"
"""The function that requests the snapshot: when it begins, the traceback exists, too."""

_LOCAL = re.compile(r".*\.(?:f_locals|funcargs)\['(\w+)'\]([^ ]*).*")
_NOT_OURS = (".f_locals['@py_", ".__slotnames__")
"""Variables that pytest adds to functions with assertions (texts that may contain addresses of objects), and those
that `copyreg` caches in classes that were copied once.
"""

_PLAIN = ("builtins.", "collections.")
_NOT_THROUGH = ("builtins.module", "builtins.frame", "builtins.traceback")


def other_values(session: Session, before: Snapshot, event: int, recording: Path) -> list[str]:
    """Return descriptions of values that differ from the test's failure; `session` has a replay without other tests.

    `before` is the snapshot that was taken when the test failed; in the replay `event` events precede it. Raises
    ReplaydbgError if this cannot be determined. The secrets of `recording`, which has `before`, count as equal: there
    they are masked.
    """
    after = _masked(session, _where_taken(session, event), recording)
    own = _own_modules(after)
    roots = [*_own_frames(before, session.ask.stack()), *_modules(before, _used(session, own))]
    return _texts(_differences(Holding(before), after, roots))


def values_left_behind(whole: Session, alone: Session, recording: Path) -> list[Change]:
    """Return the values that differ when the test begins: `before` it is with all tests, `after` it is without others.

    `whole`, a session at the test's failure, has all tests, `alone` not those before it. As for `other_values`,
    secrets of `recording` count as equal, and modules that the test cannot have read do not count. Raises
    ReplaydbgError if this cannot be determined.
    """
    before, after = (_masked(each, each.count_of("@test"), recording) for each in (whole, alone))
    roots = _modules(before.snapshot, _used(whole, _own_modules(before)))
    return list(_differences(before, after, roots))


def _masked(session: Session, count: int, recording: Path) -> Holding:
    return Holding(masked_snapshot_of(recording, holdings(session, [count])[0].snapshot))


def _own_modules(holding: Holding) -> list[str]:
    return [each for each in holding.modules if each.partition(".")[0] not in ("replaydbg", "__main__")]


def _differences(before: Holding, after: Holding, roots: Iterable[int]) -> Iterator[Change]:
    """Yield the changes of what can be reached from `roots`."""
    reached = _Reach(before.snapshot, _own_modules(after)).walk(roots)
    for each in drift(before, after, most=None, scope="all").changed.items:
        if before.snapshot.find(each.owner[0]) in reached and not any(name in each.path for name in _NOT_OURS):
            yield each


def _where_taken(session: Session, event: int) -> int:
    """Return the count of lines at the call that requested the snapshot; so many events precede it."""
    files = [each.file for each in session.index.hits if each.file.endswith(_PLUGIN)]
    if session.failure is None or not files:
        raise ReplaydbgError("a replay without the other tests does not reach the failure")
    worker = session.travel.at(session.failure.count)
    last = session.index.count(Moment(min(event + 1, session.index.events), 1))  # not as far as the next failure
    order = RunOrder(until=last, breaks=(Break(file=files[0], function=_SEES),))
    found = 0
    try:
        while not isinstance(where := worker.run(order, idle=session.travel.idle), EndReport) and where.why == "break":
            if where.event > event:
                break
            found = where.count
    finally:
        worker.kill()
    if not found:
        raise ReplaydbgError("a replay without the other tests does not reach the failure")
    return found


# ---- modules that the test may have used ----


def _used(session: Session, own: Sequence[str]) -> set[str]:
    """Return the program's modules that the test may have read: their code ran in it, or code that imports them."""
    files = _files_that_ran(session)
    names = {name for file in files for name in _imported("\n".join(session.sources.lines(file)))}
    known = {each.file for each in session.index.hits}
    return {
        module
        for module in own
        if module.rpartition(".")[2] in names
        or any(_is_of(file, module) for file in files)
        or not any(_is_of(file, module) for file in known)
    }


def _files_that_ran(session: Session) -> set[str]:
    """Return the program's own files with a function that ran between the beginning of the test and its failure."""
    assert session.failure is not None
    hits = [each for each in session.index.hits if each.function != "<module>" and not is_library(each.file)]
    breaks = tuple(Break(file=each.file, line=next(iter(each.lines)), stop_at=0) for each in hits)
    worker = session.travel.at(session.count_of("@test"))
    try:
        where = worker.run(RunOrder(until=session.failure.count, breaks=breaks), idle=session.travel.idle)
    finally:
        worker.kill()
    if isinstance(where, EndReport):
        raise ReplaydbgError("a replay without the other tests does not reach the failure")
    return {each.file for each, passed in zip(hits, where.passages, strict=True) if passed.count}


@lru_cache(maxsize=1000)  # the failures of a session ran mostly the same files
def _imported(text: str) -> frozenset[str]:
    """Return the last names of the modules that a source text may import."""
    found = set()
    with suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= {alias.name.rpartition(".")[2] for alias in node.names}
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.rpartition(".")[2])
    return frozenset(found)


def _is_of(file: str, module: str) -> bool:
    path = "/" + module.replace(".", "/")
    return file.endswith((f"{path}.py", f"{path}/__init__.py"))


# ---- objects that can be reached from them ----


def _modules(snapshot: Snapshot, names: set[str]) -> list[int]:
    return [root.node for root in snapshot.roots if root.label in names]


def _own_frames(snapshot: Snapshot, stack: Sequence[Frame]) -> list[int]:
    """Return the nodes of the traceback's frames that belong to the program; `stack` is that of the failure."""
    frames = list(_frames(snapshot))
    pairs = zip(reversed(frames), stack, strict=False)  # pytest has caught it further out
    return [node for node, frame in pairs if not is_library(frame.file)]


def _frames(snapshot: Snapshot) -> Iterator[int]:
    """Yield the nodes of the traceback's frames, the outermost first."""
    raised = next((root.node for root in snapshot.roots if root.label == "exception"), None)
    entry = _step(snapshot, raised, ".__traceback__")
    while entry is not None:
        frame = _step(snapshot, entry, ".tb_frame")
        if frame is not None:
            yield frame
        entry = _step(snapshot, entry, ".tb_next")


def _step(snapshot: Snapshot, node: int | None, step: str) -> int | None:
    if node is None:
        return None
    return next((edge.target for edge in snapshot.edges(node) if snapshot.step_text(edge.label) == step), None)


class _Reach:
    """Walks from frames and modules to plain containers and the program's own classes."""

    def __init__(self, snapshot: Snapshot, own: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._own = tuple(f"{each}." for each in own)

    def walk(self, roots: Iterable[int]) -> set[int]:
        """Return the reached nodes, including the roots."""
        reached = set(roots)
        open_ = list(reached)
        while open_:
            for edge in self._snapshot.edges(open_.pop()):
                if edge.target not in reached and self._is_own(edge.target):
                    reached.add(edge.target)
                    open_.append(edge.target)
        return reached

    def _is_own(self, node: int) -> bool:
        """Whether its content belongs to the program, and not to a library: through a library everything is reached."""
        name = self._snapshot.type_name(node)
        if name == "builtins.type":
            return self._snapshot.value_text(node).startswith(self._own)
        return name.startswith(self._own) or (name.startswith(_PLAIN) and name not in _NOT_THROUGH)


# ---- descriptions ----


def _texts(changes: Iterable[Change]) -> list[str]:
    found = list(dict.fromkeys(_text(each) for each in changes))
    more = len(found) - _MOST
    return [*found[:_MOST], *([f"and {more:,} more"] if more > 0 else [])]


def _text(change: Change) -> str:
    path = _LOCAL.sub(r"\1\2", change.path)
    if not change.after:
        return f"{path} ({change.before}) is missing"
    if not change.before:
        return f"{path} ({change.after}) is new"
    return f"{path} is {change.after} instead of {change.before}"
