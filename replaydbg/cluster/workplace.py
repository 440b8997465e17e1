"""Where tasks are run: what their orders refer to, and directories for their work."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from replaydbg.cluster.tasks import JsonObject
from replaydbg.commits.repository import Repository, outside_environment
from replaydbg.commits.worktrees import Worktrees


def task_environment() -> dict[str, str]:
    """Return the environment of a task's processes: ours, without the hash seed that dask gives all of its workers."""
    return {name: text for name, text in outside_environment().items() if name != "PYTHONHASHSEED"}


class TaskImpossible(Exception):
    """A task cannot be run here; the message is the end of a sentence."""


class Workplace(Protocol):
    """The files and directories of the tasks of one process; used from several threads."""

    directory: Path
    """For temporary files and directories; nothing else is in it."""

    def path(self, reference: JsonObject) -> Path:
        """Return the file or directory of a reference, which nobody writes to. Raises TaskImpossible."""

    def worktrees(self, reference: JsonObject) -> Worktrees:
        """Return the worktrees of a referenced repository. Raises TaskImpossible."""


Handler = Callable[[JsonObject, Workplace, threading.Event], JsonObject]
"""Answers an order; raises TaskImpossible, and GivenUp when the event is set."""


class KeptWorktrees:
    """The worktrees of each repository, made once."""

    def __init__(self) -> None:
        self._made: dict[str, Worktrees] = {}
        self._lock = threading.Lock()

    def of(self, root: Path) -> Worktrees:
        """Return the worktrees of the repository in `root`. Raises UsageError, OSError."""
        with self._lock:
            if str(root) not in self._made:
                self._made[str(root)] = Worktrees(Repository(root))
            return self._made[str(root)]

    def close(self) -> None:
        """Remove them all."""
        with self._lock:
            for each in self._made.values():
                each.close()
            self._made.clear()


class LocalWorkplace:
    """This machine: references are paths."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="replaydbg-tasks-", ignore_cleanup_errors=True)
        self.directory = Path(self._temporary.name)
        self._worktrees = KeptWorktrees()

    def path(self, reference: JsonObject) -> Path:
        """Return the file or directory of a reference."""
        return Path(reference["path"])

    def worktrees(self, reference: JsonObject) -> Worktrees:
        """Return the worktrees of a repository of the user's."""
        return self._worktrees.of(Path(reference["path"]))

    def close(self) -> None:
        """Remove what is left of the tasks."""
        with suppress(OSError):
            self._worktrees.close()
        self._temporary.cleanup()
