"""The keys of recordings: equal only if everything is equal that decides verdicts besides the code and the machine.

No key depends on where a recording or the repository is, or on times of files: nights may run on fresh machines.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

import replaydbg
from replaydbg.commits.fingerprint import content
from replaydbg.commits.recorded_paths import find_root_among
from replaydbg.commits.repository import Repository
from replaydbg.errors import UsageError
from replaydbg.log.reader import open_recording
from replaydbg.log.sources import sources_of
from replaydbg.regressions.night import NightQuestion


class CaseKey(NamedTuple):
    """The identity of a recording under one question."""

    key: str
    """Of the recording, the options, and this version of replaydbg."""
    recording: str
    """A digest of the recording's file."""
    root: Path
    """The repository's directory as the recorded program saw it."""


class CaseKeys:
    """Computes the keys for one run."""

    def __init__(self, question: NightQuestion, repository: Repository, last: str, files: Collection[str]) -> None:
        """`last` is the commit whose files show where the repository was; `files` are those that count as tracked."""
        self._files = files
        self._root = question.recorded_root
        self._blobs = repository.blobs(last)
        how = question.trials
        options = {
            "build": (how.build, repository.prefix) if how.build else None,
            "with": [(str(path.relative_to(repository.root)), content(path)) for path in how.taken_along],
            "data": how.is_data_of_commit,
            "rest": how.is_rest_recorded,
            "timeout": how.timeout,
            "python": sys.version,
            "replaydbg": _tool(),
        }
        self._options = json.dumps(options, sort_keys=True)

    def of(self, recording: Path) -> CaseKey:
        """Return the key of a recording. Raises UsageError if it is not of this repository, ReplaydbgError, OSError."""
        if recording.is_dir():
            raise UsageError("It is not sealed: it is being recorded, or its recorder was killed.")
        with open_recording(recording) as opened:
            opened.check_secrets()
            sources = sources_of(opened)
        with recording.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        root = self._root if self._root is not None else find_root_among(recording, sources, self._blobs)
        root = root.absolute()
        # These are written into worktrees that lack them.
        extra = "\0".join(sorted(path for path in sources if self._is_untracked(path, root)))
        whole = f"{digest}\0{root}\0{self._options}\0{extra}"
        key = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return CaseKey(key, digest[:32], root)

    def _is_untracked(self, path: str, root: Path) -> bool:
        return path.startswith(f"{root}/") and path[len(str(root)) + 1 :] not in self._files


@cache
def _tool() -> str:
    """Return a digest of this package: during development its version stays the same for long."""
    root = Path(replaydbg.__file__).parent
    whole = hashlib.sha256(replaydbg.__version__.encode())
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".so")):
        whole.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()
