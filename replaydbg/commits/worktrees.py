"""Temporary worktrees, one for each job, in which commits are tested."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

from replaydbg.commits.repository import GitFailed, Repository
from replaydbg.errors import UsageError

PREFIX = "replaydbg-bisect-"
"""Prefix of the names of our temporary directories."""


class Worktrees:
    """The worktrees of one search; must be closed in any case."""

    def __init__(self, repository: Repository, parent: Path | None = None) -> None:
        """Make an empty directory for them in `parent` (default: that of temporary files), outside the repository."""
        self._repository = repository
        parent = (parent or Path(tempfile.gettempdir())).resolve()
        if parent.is_relative_to(repository.root.resolve()):
            raise UsageError(
                f"The temporary directory {str(parent)!r} is in the repository: set TMPDIR to another one."
            )
        self.directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._free: list[Path] = []
        self._made = 0
        # git locks its list of worktrees, and fails if the lock is held.
        self._lock = threading.Lock()

    def take(self, commit: str) -> Path:
        """Return a worktree in which `commit` is checked out as in a fresh clone; `give_back` it. Raises GitFailed."""
        with self._lock:
            place = self._free.pop() if self._free else None
        if place is not None:
            try:
                self._repository.run("checkout", "--quiet", "--detach", "--force", commit, directory=place)
                # Twice: this also removes what a build has cloned into it.
                self._repository.run("clean", "--quiet", "-ffdx", directory=place)
                return place
            except GitFailed:
                # A program left something that cannot be removed; then use a new worktree.
                self._remove(place)
        with self._lock:
            self._made += 1
            place = self.directory / str(self._made) / self._repository.root.name
            self._repository.run("worktree", "add", "--quiet", "--detach", "--force", str(place), commit)
        return place

    def files(self, place: Path) -> frozenset[str]:
        """Return the paths of the files of the commit in a worktree."""
        return frozenset(filter(None, self._repository.run("ls-files", "-z", directory=place).split("\0")))

    def give_back(self, place: Path) -> None:
        """Make the worktree available for another commit."""
        with self._lock:
            self._free.append(place)

    def close(self) -> None:
        """Remove all of them, and git's records of them."""
        remove_all(self._repository, self.directory)

    def _remove(self, place: Path) -> None:
        with self._lock:
            _remove_one(self._repository, place)


def remove_all(repository: Repository, directory: Path) -> None:
    """Remove a directory of worktrees, also one that a killed search left behind."""
    # The path as git records it: with links resolved.
    ours = directory.resolve()
    for line in repository.run("worktree", "list", "--porcelain").splitlines():
        word, _, path = line.partition(" ")
        if word == "worktree" and Path(path).is_relative_to(ours):
            _remove_one(repository, Path(path))
    _delete(directory)


def _remove_one(repository: Repository, place: Path) -> None:
    try:
        # Twice: this also removes a locked one.
        repository.run("worktree", "remove", "--force", "--force", str(place))
    except GitFailed:
        # A file that a build has protected. Without the directory git can forget it.
        _delete(place)
        repository.run("worktree", "remove", "--force", "--force", str(place))


def _delete(directory: Path) -> None:
    """Delete a tree, also where a program removed its own write permission."""
    if directory.is_dir() and not directory.is_symlink():
        directory.chmod(0o700)
    for parent, names, _ in os.walk(directory):
        for path in (Path(parent, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)
