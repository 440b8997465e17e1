"""The file in which a search keeps its verdicts, so that one that was interrupted goes on where it was."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from replaydbg.bisect.verdict import Verdict
from replaydbg.commits.question import Look, Question
from replaydbg.errors import UsageError

VERSION = 1
"""The number of the form in which it is written; another one is not read."""


def key_of(root: Path, prefix: str, question: Question, *, python: str) -> str:
    """Return the name of a question: equal if every look would find the same."""
    facts = asdict(replace(question, jobs=1, timeout=0.0, hash_seed=0))
    facts |= {"root": str(root), "prefix": prefix, "python": python, "taken": [*map(_content, question.taken_along)]}
    facts["replayed"] = _content(question.replay) if question.replay is not None else ""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:24]


@dataclass(slots=True)
class State:
    """What is known so far, in memory and in the file."""

    path: Path
    """The file."""
    key: str
    """The question that it belongs to."""
    looks: dict[str, Look] = field(default_factory=dict)
    """The look at each commit, in the order of their ends."""
    passes_needed: int = 0
    """After how many passing runs a commit counts as good; 0: not measured yet."""
    worktrees: str = ""
    """The directory of the worktrees of the search that runs, or was killed."""
    _lock: IO[bytes] | None = None

    def open(self, *, is_restart: bool) -> None:
        """Take the file for us alone and read what an earlier search left; raises UsageError.

        With `is_restart` the verdicts that are there are forgotten.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = self.path.with_name(self.path.name + ".lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"Another search for the same runs already (its state is {str(self.path)!r}).") from None
        told = self._read()
        if told is None:
            return
        self.worktrees = told.get("worktrees", "")
        if is_restart:
            return
        if told.get("key") != self.key:
            raise UsageError(f"{str(self.path)!r} is the state of another search: --restart begins anew.")
        self.passes_needed = told["passes_needed"]
        self.looks = {each["commit"]: _as_look(each) for each in told["looks"]}

    def note(self, look: Look) -> None:
        """Add a look, and write the file."""
        self.looks[look.commit] = look
        self.write()

    def write(self) -> None:
        """Write the file, so that at any moment it is either the old one or the new one."""
        looks = [asdict(look) | {"verdict": look.verdict.value} for look in self.looks.values()]
        told = {"version": VERSION, "key": self.key, "passes_needed": self.passes_needed, "looks": looks}
        data = json.dumps(told | {"worktrees": self.worktrees}, indent=1)
        new = self.path.with_name(self.path.name + ".new")
        with new.open("w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def close(self) -> None:
        """Leave the file to others."""
        if self._lock is not None:
            self._lock.close()

    @property
    def recordings(self) -> Path:
        """The directory in which recordings lie while it is not known which ones will be kept."""
        return self.path.with_name(self.path.name + "-recordings")

    def _read(self) -> dict[str, Any] | None:
        try:
            told = json.loads(self.path.read_text(encoding="utf-8", errors="surrogateescape"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            raise UsageError(f"The state {str(self.path)!r} cannot be read: {error}. Name another file.") from None
        if not isinstance(told, dict) or told.get("version") != VERSION:
            raise UsageError(f"{str(self.path)!r} is not the state of a search. Name another file.")
        return told


def _as_look(told: dict[str, Any]) -> Look:
    values = told | {"verdict": Verdict(told["verdict"]), "liberties": tuple(told["liberties"]), "is_reused": True}
    return Look(**values)


def _content(path: Path) -> str:
    """Return a name for the content of a file or a tree."""
    whole = hashlib.sha256()
    for each in _files(path):
        whole.update(str(each.relative_to(path.parent)).encode("utf-8", "surrogateescape") + b"\0")
        whole.update(each.read_bytes())
    return whole.hexdigest()


def _files(path: Path) -> Iterable[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
