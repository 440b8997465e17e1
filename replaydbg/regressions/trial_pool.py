"""Run trials, several at once: on this machine, each in a worktree of its own; or elsewhere, by the same interface."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

from replaydbg.commits.surroundings import Surroundings
from replaydbg.commits.worktree_commands import GivenUp
from replaydbg.commits.worktrees import Worktrees
from replaydbg.regressions.night import TrialSettings
from replaydbg.regressions.trial_slot import CommitTrial, TrialResult, TrialSlot


class TrialRunner(Protocol):
    """Runs trials; close it in any case."""

    @property
    def has_room(self) -> bool:
        """Whether another trial can begin at once."""

    @property
    def commits(self) -> Collection[str]:
        """The commits at which the next trial costs no check-out and no build, as far as is known."""

    @property
    def running(self) -> Collection[CommitTrial]:
        """The trials that have begun, and whose results `wait` has not returned."""

    def submit(self, trial: CommitTrial) -> None:
        """Begin a trial."""

    def wait(self) -> list[tuple[CommitTrial, TrialResult]]:
        """Wait until a trial has ended, and return those that have. Raises what ended all of them."""

    def close(self) -> None:
        """End all trials."""


TrialsElsewhere = Callable[[TrialSettings, Surroundings, tuple[str, ...]], TrialRunner]
"""Makes a TrialRunner that uses other machines; the last argument has the commits of all trials, by full names."""


class TrialPool:
    """Slots on this machine in which trials run: a TrialRunner."""

    def __init__(self, how: TrialSettings, worktrees: Worktrees, around: Surroundings, jobs: int) -> None:
        """Run `jobs` trials at once; at least 1."""
        rates: dict[Path, tuple[int, int]] = {}
        self._free = [TrialSlot(how, worktrees, around, rates) for _ in range(jobs)]
        self._running: dict[Future[TrialResult], tuple[CommitTrial, TrialSlot]] = {}
        self._cancel = threading.Event()
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="trial")

    @property
    def has_room(self) -> bool:
        """Whether another trial can begin at once."""
        return bool(self._free)

    @property
    def commits(self) -> Collection[str]:
        """The commits that are checked out in free slots: a trial there needs no check-out and no build."""
        return [slot.commit for slot in self._free if slot.commit]

    @property
    def running(self) -> tuple[CommitTrial, ...]:
        """The trials that run."""
        return tuple(trial for trial, _ in self._running.values())

    def submit(self, trial: CommitTrial) -> None:
        """Begin a trial in a free slot."""
        slot = next((each for each in self._free if each.commit == trial.commit), self._free[0])
        self._free.remove(slot)
        self._running[self._threads.submit(slot.run, trial, self._cancel)] = (trial, slot)

    def wait(self) -> list[tuple[CommitTrial, TrialResult]]:
        """Wait until a trial has ended, and return those that have. Raises what ended it: OSError, GitFailed."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        found = []
        for future in done:
            trial, slot = self._running.pop(future)
            self._free.append(slot)
            found.append((trial, future.result()))
        return found

    def close(self) -> None:
        """End all trials."""
        self._cancel.set()
        for future in list(self._running):
            try:
                future.result()
            except (GivenUp, OSError):
                continue
        self._threads.shutdown()
