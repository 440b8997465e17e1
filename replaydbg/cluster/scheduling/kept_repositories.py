"""The repositories that a worker has made of packs of commits, with worktrees: those that were used last stay."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from replaydbg.cluster.scheduling.git_pack import unpack
from replaydbg.cluster.workplace import TaskImpossible
from replaydbg.commits.repository import GitFailed, Repository
from replaydbg.commits.worktrees import Worktrees

MOST = 3
"""Repositories that stay although no task uses them: a worker may live for months, and each night has a new one."""


@dataclass(slots=True)
class _KeptRepository:
    directory: Path
    worktrees: Worktrees
    users: int = 0


class KeptRepositories:
    """The repositories of one worker; used from several threads."""

    def __init__(self, directory: Path) -> None:
        """Make them in `directory`, which need not exist."""
        self._directory = directory
        self._lock = threading.Lock()
        self._made: dict[str, _KeptRepository] = {}
        """By the names of their contents; those that were used last are at the end."""

    @contextmanager
    def worktrees(self, name: str, content: Path) -> Iterator[Worktrees]:
        """Yield the worktrees of the repository of a content, which stays in the block. Raises TaskImpossible."""
        with self._lock:
            kept = self._made.pop(name, None) or self._make(name, content)
            self._made[name] = kept
            kept.users += 1
        try:
            yield kept.worktrees
        finally:
            with self._lock:
                kept.users -= 1
                self._remove_unused()

    def _make(self, name: str, content: Path) -> _KeptRepository:
        directory = self._directory / name
        shutil.rmtree(directory, ignore_errors=True)  # what a failed attempt has left
        try:
            unpack(content / "commits.pack", (content / "facts.json").read_bytes(), directory)
            (checkout,) = directory.iterdir()
            return _KeptRepository(directory, Worktrees(Repository(checkout), self._directory))
        except FileNotFoundError:
            raise TaskImpossible("git is not installed on the worker") from None
        except GitFailed as error:
            raise TaskImpossible(f"git on the worker cannot read the commits: {error}") from None

    def _remove_unused(self) -> None:
        unused = [name for name, kept in self._made.items() if not kept.users]
        for name in unused[: max(0, len(unused) - MOST)]:
            kept = self._made.pop(name)
            with suppress(GitFailed, OSError):
                kept.worktrees.close()
            shutil.rmtree(kept.directory, ignore_errors=True)
