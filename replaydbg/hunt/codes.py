"""Compare the source code of two runs, and test by exchange whether it causes the difference."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from replaydbg.hunt.reading import Twins
from replaydbg.log.reader import Recording
from replaydbg.log.sources import sources_of
from replaydbg.replay import replay
from replaydbg.replay.ending import Outcome
from replaydbg.replay.lenient import Lenient


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A source file that differs between the two runs."""

    path: str
    """The path in the bad run, or in the good run if only that one has it; relative if below the working directory."""
    line: int
    """The first line that differs, from 1; 0: only one run has the file."""
    good: str | None
    """That line in the good run, empty after the end of the file; None: only the bad run imported it."""
    bad: str | None
    """The same in the bad run."""


@dataclass(frozen=True, slots=True)
class CodeDifference:
    """The source differences of two runs, and their effect."""

    changes: tuple[SourceChange, ...]
    """The changed files, by name."""
    bad_passes: bool | None
    """Whether the bad run passes with the sources of the good one; None: this cannot be tested."""
    good_fails: bool | None
    """Whether the good run fails as the bad one did with the sources of the bad one; None: this cannot be tested."""
    why: str
    """Why one of these cannot be tested; empty if both can."""
    trials: int
    """Number of replays made for it."""

    @property
    def is_cause(self) -> bool:
        """Whether the code makes the difference: at least one test confirms it, and none contradicts it."""
        tried = [each for each in (self.bad_passes, self.good_fails) if each is not None]
        return bool(tried) and all(tried)


def compare_code(twins: Twins, *, with_trials: bool) -> CodeDifference | None:
    """Return the source differences; None if there are none."""
    good, bad = _Code(twins.good), _Code(twins.bad)
    changes = [_change(good, bad, key) for key in sorted(good.files.keys() | bad.files.keys())]
    differing = tuple(change for change in changes if change is not None)
    if not differing:
        return None
    if not with_trials:
        return CodeDifference(differing, None, None, "no trials were made", 0)
    recorded = _replayed(twins.bad, {})
    passes, why = _with_sources(bad, good, differing)
    fails, other = _with_sources(good, bad, differing)
    return CodeDifference(
        differing,
        bad_passes=not passes.is_failure if passes is not None else None,
        good_fails=recorded[0] is not None and fails.is_like(recorded[0]) if fails is not None else None,
        why=why or other,
        trials=3,
    )


class _Code:
    """The sources of one run, by keys that both runs share."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.cwd = recording.header.cwd
        self.files = {self._key(path): data for path, data in sources_of(recording).items()}

    def _key(self, path: str) -> str:
        """Return the path, relative to the working directory for files below it: that differs between commits."""
        inside = os.path.relpath(path, self.cwd)
        return path if inside.startswith("..") else inside

    def path(self, key: str) -> str:
        """Return the absolute path of a key in this run."""
        return os.path.join(self.cwd, key)  # noqa: PTH118


def _change(good: _Code, bad: _Code, key: str) -> SourceChange | None:
    one, other = good.files.get(key), bad.files.get(key)
    if one == other:
        return None
    if one is None or other is None:
        return SourceChange(key, 0, None if one is None else "", None if other is None else "")
    lines = zip_longest(_lines(one), _lines(other), fillvalue="")
    number, (before, after) = next(
        (each for each in enumerate(lines, 1) if each[1][0] != each[1][1]),
        (1, ("", "")),  # differs only in line ends
    )
    return SourceChange(key, number, before.strip(), after.strip())


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def _with_sources(run: _Code, other: _Code, changes: tuple[SourceChange, ...]) -> tuple[Outcome | None, str]:
    """Replay one run with the sources of the other one; return the outcome, or why there is none."""
    folders = {str(Path(run.path(change.path)).parent) for change in changes}
    outer = [each for each in folders if not any(each.startswith(f"{one}/") for one in folders)]
    with tempfile.TemporaryDirectory(prefix="replaydbg-code-") as scratch:
        moved = {}
        for number, folder in enumerate(sorted(outer)):
            moved[folder] = str(Path(scratch, str(number)))
            for key, data in other.files.items():
                place = run.path(key)
                if place.startswith(f"{folder}/"):
                    target = Path(scratch, str(number), os.path.relpath(place, folder))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
        return _replayed(run.recording, moved)


def _replayed(recording: Recording, moved: Mapping[str, str]) -> tuple[Outcome | None, str]:
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        lenient = Lenient(sources=moved) if moved else None
        result = replay(recording.path, lenient=lenient, with_outcome=True, stdout=null, stderr=null)
    finally:
        os.close(null)
    if result.outcome is None or result.ended_early:
        return None, result.cannot_test or result.ended_early or "its end was not reached"
    return result.outcome, ""
