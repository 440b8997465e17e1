"""The file that keeps the verdicts of a search, so that an interrupted one can be resumed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NotRequired, TypedDict

from replaydbg.commits.depends import Dependencies, Dependency, States, changed_since
from replaydbg.commits.fingerprint import key_of
from replaydbg.commits.question import CommitLook
from replaydbg.errors import UsageError
from replaydbg.events.verdict import Verdict
from replaydbg.log.coding.shapes import COUNT, DictOf, ListOf, fits
from replaydbg.log.hidden import RecordingMask
from replaydbg.store.private import open_private

VERSION = 2
"""The version of the file's format; other versions are not read."""


_SHAPE = {
    "version": VERSION,
    "parts": DictOf(str),
    "passes_needed": COUNT,
    "depends": ListOf((str, str, str)),
    "looks": ListOf({"commit": str, "verdict": str, "why": str, "liberties": ListOf(str)}),
}


class _StoredLook(TypedDict):
    """A CommitLook in the file; dependencies, which most looks share, are numbers of the file's table of them."""

    commit: str
    verdict: str
    why: str
    seconds: float
    runs: int
    failed: int
    failure: str
    recording: str
    liberties: Sequence[str]
    shift: str
    clock_shift: str
    is_reused: bool
    depends: list[int] | None
    unwatched: NotRequired[list[str]]
    """Absent if `depends` is None."""


class _Stored(TypedDict):
    """The content of the file."""

    version: int
    parts: dict[str, str]
    passes_needed: int
    depends: list[tuple[str, str, str]]
    """Aspect, path and state of each dependency."""
    looks: list[_StoredLook]
    worktrees: NotRequired[str]


@dataclass(slots=True)
class State:
    """The verdicts so far, in memory and in the file."""

    path: Path
    """The file."""
    parts: Mapping[str, str]
    """The parts of its question, as `parts_of` returns them."""
    looks: dict[str, CommitLook] = field(default_factory=dict)
    """The look at each commit, in order of completion."""
    passes_needed: int = 0
    """Number of passing runs after which a commit counts as good; 0: not measured yet."""
    worktrees: str = ""
    """The directory of the worktrees of the search that is running, or was killed."""
    replayed: Path | None = None
    """The recording that is replayed at each commit: its secrets are masked in the file."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Number of earlier verdicts that are not used because this file or directory has changed."""
    _lock: IO[bytes] | None = None
    _masks: dict[Path, RecordingMask] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the question."""
        return key_of(self.parts)

    def open(self, *, is_restart: bool) -> None:
        """Lock the file and read the verdicts of an earlier search; raises UsageError.

        With `is_restart` these verdicts are discarded. A verdict whose dependencies have changed is dropped.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = self.path.with_name(self.path.name + ".lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"The same search is already running (its state is {str(self.path)!r}).") from None
        stored = self._read()
        if stored is None:
            return
        self.worktrees = stored.get("worktrees", "")
        if is_restart:
            return
        then = stored["parts"]
        if then != dict(self.parts):
            others = ", ".join(name for name in self.parts if then.get(name) != self.parts[name])
            raise UsageError(
                f"{str(self.path)!r} is the state of another search; they differ in: {others}. --restart starts over."
            )
        self.passes_needed = stored["passes_needed"]
        self._reuse(stored)

    def _reuse(self, stored: _Stored) -> None:
        now = States()
        table = [(Dependency(aspect, path), state) for aspect, path, state in stored["depends"]]
        for each in stored["looks"]:
            depends = _depends_of(each, table)
            changed = changed_since(depends.states.items(), now) if depends is not None else ""
            if changed:
                self.dropped[changed] = self.dropped.get(changed, 0) + 1
            elif depends is not None:
                self.looks[each["commit"]] = _as_look(each, depends)

    def changed_meanwhile(self) -> str:
        """Return the path of a file or directory that a look depended on and that has changed since; empty if none."""
        now = States()
        looks = (look.depends for look in self.looks.values())
        return next(filter(None, (changed_since(each.states.items(), now) for each in looks if each is not None)), "")

    def forget(self, *commits: str) -> None:
        """Remove the looks at these commits: the next search looks again."""
        for commit in commits:
            self.looks.pop(commit, None)
        self.passes_needed = 0
        self.write()

    def note(self, look: CommitLook) -> None:
        """Add a look, and write the file. The secrets of its recording are masked in the reason."""
        self.looks[look.commit] = replace(look, why=self._masked(look))
        self.write()

    def _masked(self, look: CommitLook) -> str:
        path = Path(look.recording) if look.recording else self.replayed
        if path is None:
            return look.why
        if path not in self._masks:
            self._masks[path] = RecordingMask(path, has_beginnings=True)
        return self._masks[path].masked_text(look.why)

    def write(self) -> None:
        """Replace the file atomically."""
        table: dict[tuple[str, str, str], int] = {}
        looks = [_as_facts(look, table) for look in self.looks.values()]
        stored: _Stored = {
            "version": VERSION,
            "parts": dict(self.parts),
            "passes_needed": self.passes_needed,
            "looks": looks,
            "depends": list(table),
            "worktrees": self.worktrees,
        }
        data = json.dumps(stored, indent=1)
        new = self.path.with_name(self.path.name + ".new")
        with open_private(new, errors="surrogateescape") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def close(self) -> None:
        """Unlock the file."""
        if self._lock is not None:
            self._lock.close()

    @property
    def recordings(self) -> Path:
        """The directory of recordings of which it is not yet known whether they will be kept."""
        return self.path.with_name(self.path.name + "-recordings")

    def _read(self) -> _Stored | None:
        try:
            stored: _Stored = json.loads(self.path.read_text(encoding="utf-8", errors="surrogateescape"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            raise UsageError(f"The state {str(self.path)!r} cannot be read: {error}. Use another file.") from None
        if not fits(stored, _SHAPE):
            raise UsageError(f"{str(self.path)!r} is not the state of a search. Use another file.")
        return stored


def _as_facts(look: CommitLook, table: dict[tuple[str, str, str], int]) -> _StoredLook:
    """Return a look as JSON data, and add its dependencies to `table`."""
    facts: _StoredLook = {
        "commit": look.commit,
        "verdict": look.verdict.value,
        "why": look.why,
        "seconds": look.seconds,
        "runs": look.runs,
        "failed": look.failed,
        "failure": look.failure,
        "recording": look.recording,
        "liberties": look.liberties,
        "shift": look.shift,
        "clock_shift": look.clock_shift,
        "is_reused": look.is_reused,
        "depends": None,
    }
    if look.depends is not None:
        rows = [(each.aspect, each.path, state) for each, state in look.depends.states.items()]
        facts["depends"] = [table.setdefault(row, len(table)) for row in rows]
        facts["unwatched"] = sorted(look.depends.unwatched)
    return facts


def _depends_of(stored: _StoredLook, table: list[tuple[Dependency, str]]) -> Dependencies | None:
    if stored["depends"] is None:
        return None
    return Dependencies(dict(table[number] for number in stored["depends"]), set(stored.get("unwatched", ())))


def _as_look(stored: _StoredLook, depends: Dependencies) -> CommitLook:
    return CommitLook(
        stored["commit"],
        Verdict(stored["verdict"]),
        stored["why"],
        stored["seconds"],
        runs=stored["runs"],
        failed=stored["failed"],
        failure=stored["failure"],
        recording=stored["recording"],
        liberties=tuple(stored["liberties"]),
        shift=stored["shift"],
        clock_shift=stored["clock_shift"],
        is_reused=True,
        depends=depends,
    )
