"""The file that keeps verdicts between nights: a line for each, written as soon as it is known.

A line has a checksum, so a killed process or a damaged disk costs the lines concerned and no others. *Rejected*:
SQLite, which loses all of a damaged file, and would roll back any journal that lies beside it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from replaydbg.commits.depends import Dependency
from replaydbg.errors import UsageError, clause
from replaydbg.log.coding.shapes import ListOf, fits, one_of
from replaydbg.regressions.code_verdicts import CodeReads, CodeState, CommitVerdict
from replaydbg.store.own_files import OwnFiles
from replaydbg.store.private import make_directory

NAME, ASIDE, WORKTREES, LOCK = "verdicts.jsonl", "verdicts.jsonl.old", "worktrees", "lock"
"""The files of the directory."""
_FIRST = {"replaydbg": "verdicts of replaydbg ci", "version": 1}
_MOST = 1 << 30
"""Bytes of the file: some two million verdicts."""
_NUMBER = one_of(int, float)

_SHAPES = {
    "reads": {
        "row": "reads",
        "name": str,
        "inside": ListOf((str, str)),
        "outside": ListOf((str, str)),
        "whole": bool,
    },
    "verdict": {
        "row": "verdict",
        "case": str,
        "reads": str,
        "at": str,
        "state": one_of(*(each.value for each in CodeState)),
        "why": str,
        "commit": str,
        "seconds": _NUMBER,
    },
    "passed": {"row": "passed", "recording": str, "commit": str},
}


class _Place(NamedTuple):
    """What a verdict is about."""

    case: str
    """The key of the recording with the options, see `CaseKeys`."""
    reads: str
    """The name of a CodeReads."""
    at: str
    """What these were, see `state_at`."""


class KnownVerdict(NamedTuple):
    """A verdict of the file."""

    verdict: CommitVerdict
    commit: str
    """The commit at which it was computed."""
    is_new: bool
    """Whether that was in this run."""


@dataclass(slots=True)
class VerdictFile:
    """The verdicts that are known, in memory and in the file of a directory. Use it as a context manager."""

    directory: Path
    notices: list[str] = field(default_factory=list)
    """Sentences for the user about what was found in the file."""
    _verdicts: dict[_Place, KnownVerdict] = field(default_factory=dict)
    _reads: dict[str, CodeReads] = field(default_factory=dict)
    _of_case: dict[str, dict[str, None]] = field(default_factory=dict)
    _passed: dict[str, dict[str, None]] = field(default_factory=dict)
    _fd: int = -1

    def open(self, *, is_restart: bool = False) -> None:
        """Read what the file has; with `is_restart` it begins anew. Hold the lock of the directory before.

        Raises OSError if the directory cannot be written.
        """
        files = OwnFiles(self.directory)
        lines: list[str] = []
        if not is_restart:
            lines = self._read(files)
        else:
            files.remove(NAME)
        if not lines:
            files.write(NAME, (_line(_FIRST) + "\n").encode())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self.directory / NAME, flags)

    def close(self) -> None:
        """Write everything to the disk and close the file."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def reads_of(self, case: str) -> list[CodeReads]:
        """Return what the verdicts about a recording depend on: each of these decides some of them."""
        return [self._reads[name] for name in self._of_case.get(case, ())]

    def verdict(self, case: str, reads: CodeReads, at: str) -> KnownVerdict | None:
        """Return the verdict about a recording for code that answers so to what it depends on; None: unknown."""
        return self._verdicts.get(_Place(case, reads.name, at))

    def keep(self, case: str, reads: CodeReads, at: str, verdict: CommitVerdict, commit: str) -> None:
        """Add a verdict, and write it. Raises OSError."""
        if reads.name not in self._reads:
            self._take_reads(reads)
            facts = {"inside": reads.inside, "outside": reads.outside, "whole": reads.is_whole}
            self._write({"row": "reads", "name": reads.name, **facts})
        self._take(_Place(case, reads.name, at), KnownVerdict(verdict, commit, is_new=True))
        facts = {"state": verdict.state.value, "why": verdict.why, "commit": commit, "seconds": verdict.seconds}
        self._write({"row": "verdict", "case": case, "reads": reads.name, "at": at, **facts})

    def passed(self, recording: str) -> tuple[str, ...]:
        """Return the commits at which a recording passed at the end of an earlier run, by the digest of its file."""
        return tuple(self._passed.get(recording, ()))

    def note_passed(self, recording: str, commit: str) -> None:
        """Note that a recording passed at the last commit of this run. Raises OSError."""
        if commit not in self._passed.get(recording, ()):
            self._passed.setdefault(recording, {})[commit] = None
            self._write({"row": "passed", "recording": recording, "commit": commit})

    # ---- the file ----

    def _read(self, files: OwnFiles) -> list[str]:
        """Take the rows of the file; return its lines, none if it has to begin anew."""
        try:
            data = files.read(NAME, _MOST)
        except OSError as error:
            raise UsageError(f"{str(self.directory / NAME)!r} cannot be read: {clause(str(error))}.") from None
        if data is None:
            return []
        # A line without its end was being written when a run was killed.
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        unfinished = lines.pop()
        if not lines or _row(lines[0]) != _FIRST:
            files.write(ASIDE, data)
            files.remove(NAME)
            self.notices.append(
                f"{str(self.directory / NAME)!r} is not a file of verdicts that this version can read: it is kept as "
                f"{ASIDE!r}, and all verdicts are computed anew."
            )
            return []
        sound = [line for line in lines[1:] if self._take_row(_row(line))]
        damaged = len(lines) - 1 - len(sound)
        if damaged:
            self.notices.append(
                f"{str(self.directory / NAME)!r} is damaged: {damaged:,} of its {len(lines) - 1:,} lines cannot be "
                "used, and their verdicts are computed anew."
            )
        if damaged or unfinished:
            whole = "\n".join([lines[0], *sound, ""])
            files.write(NAME, whole.encode("utf-8", "surrogateescape"))
        return lines

    def _take_row(self, row: Any) -> bool:
        """Add a row; false if it is damaged, or refers to one that is."""
        shape = _SHAPES.get(str(row.get("row"))) if isinstance(row, dict) else None
        if shape is None or not fits(row, shape):
            return False
        if row["row"] == "passed":
            self._passed.setdefault(row["recording"], {})[row["commit"]] = None
        elif row["row"] == "reads":
            inside = tuple((question, path) for question, path in row["inside"])
            reads = CodeReads(inside, tuple(Dependency(*each) for each in row["outside"]), row["whole"])
            if reads.name != row["name"]:
                return False
            self._take_reads(reads)
        elif row["reads"] not in self._reads:
            return False
        else:
            verdict = CommitVerdict(CodeState(row["state"]), row["why"], row["seconds"])
            place = _Place(row["case"], row["reads"], row["at"])
            self._take(place, KnownVerdict(verdict, row["commit"], is_new=False))
        return True

    def _take_reads(self, reads: CodeReads) -> None:
        self._reads[reads.name] = reads

    def _take(self, place: _Place, known: KnownVerdict) -> None:
        self._verdicts[place] = known
        self._of_case.setdefault(place.case, {})[place.reads] = None

    def _write(self, row: dict[str, object]) -> None:
        data = (_line(row) + "\n").encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(self._fd, data) :]


class StateDirectory:
    """The directory of the file, locked for one run."""

    def __init__(self, path: Path) -> None:
        """Take the directory, which need not exist."""
        self.path = path.absolute()
        try:
            make_directory(self.path)
            self.path = self.path.resolve()
        except OSError as error:
            reason = clause(error.strerror or str(error))
            raise UsageError(f"The state directory {str(path)!r} cannot be used: {reason}.") from None
        self._files = OwnFiles(self.path)

    def locked(self) -> Any:
        """Hold the lock in the block; yields whether nobody else has it. Raises OSError."""
        return self._files.locked(LOCK)

    @property
    def worktrees(self) -> str:
        """The directory of the worktrees of a run that was killed; empty: there is none."""
        try:
            return (self._files.read(WORKTREES, 4096) or b"").decode("utf-8", "surrogateescape").strip("\n")
        except OSError:
            return ""

    def note_worktrees(self, directory: str) -> None:
        """Note where the worktrees of this run are; empty: they are removed. Raises OSError."""
        if directory:
            self._files.write(WORKTREES, directory.encode("utf-8", "surrogateescape") + b"\n")
        else:
            self._files.remove(WORKTREES)


def _line(row: dict[str, Any]) -> str:
    text = json.dumps(row, separators=(",", ":"))
    return f"{crc32(text.encode()):08x} {text}"


def _row(line: str) -> Any:
    """Return the row of a line; None if it is damaged."""
    checksum, _, text = line.partition(" ")
    try:
        if int(checksum, 16) != crc32(text.encode("utf-8", "surrogateescape")):
            return None
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
