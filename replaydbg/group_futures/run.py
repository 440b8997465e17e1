"""Run futures of a group of processes that were recorded together."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from replaydbg.classes import dataclass, field
from replaydbg.futures.checks import check_numbers
from replaydbg.futures.future import Future
from replaydbg.futures.grouping import KeptEndings, grouped, share_of
from replaydbg.futures.launcher import FIRST_SEED, TIMEOUT, Futures
from replaydbg.group_futures.future_group import RunningGroup, StandingGroup
from replaydbg.group_futures.future_line import future_line
from replaydbg.group_futures.group_keeper import GroupKeeper
from replaydbg.group_futures.standing_group import stand
from replaydbg.launch.processors import processors

_LOOK = 50
"""Milliseconds between two looks whether one takes too long."""


@dataclass(frozen=True, slots=True)
class GroupWishes:
    """The options of the command."""

    count: int
    """How many."""
    at: Mapping[int, int] = field(default_factory=dict)
    """The latest positions of some processes; empty: those of `first_choice()`."""
    seed: int = FIRST_SEED
    """The first one's seed; the others have the numbers that follow."""
    keeps_all: bool = False
    """Whether each is kept; otherwise one example of each ending is."""
    output: Path | None = None
    """The directory for what is kept (default: the store)."""
    jobs: int | None = None
    """How many run at once (default: the number of processors)."""
    timeout: float = TIMEOUT
    """Seconds that the processes of each may compute together."""


def run_group_futures(
    directory: Path, wishes: GroupWishes, *, name: str, store: Path, seen: Callable[[Future], None] = lambda _: None
) -> Futures:
    """Run futures of the group in `directory`, called `name` in commands; what is kept goes to `store`.

    `seen` is called with each as it ends. Raises UsageError, NoFutures, NoSuchMoment, Divergence if the replay of the
    past differs, NoFence, and the errors of `open_recording` and `prepare`.
    """
    check_numbers(wishes.count, wishes.jobs, wishes.seed, wishes.timeout)
    began = time.monotonic()
    line = future_line(directory, name, wishes.at)
    with ExitStack() as stack:
        group = stand(line, stack)
        replayed = time.monotonic() - began
        if wishes.output is not None:
            wishes.output.mkdir(parents=True, exist_ok=True)
        batch = _Batch(group, wishes, GroupKeeper(line, wishes.output, store), seen, KeptEndings(wishes.keeps_all))
        batch.run()
    return Futures(
        name,
        0,
        tuple(grouped(batch.done)),
        batch.kept,
        share_of(batch.done),
        time.monotonic() - began,
        replayed,
        unkept=batch.keeper.unkept,
        cut=line.positions,
    )


@dataclass(slots=True)
class _Batch:
    """Futures while they run."""

    group: StandingGroup
    wishes: GroupWishes
    keeper: GroupKeeper
    seen: Callable[[Future], None]
    endings: KeptEndings
    done: list[Future] = field(default_factory=list)
    kept: dict[int, Path] = field(default_factory=dict)

    def run(self) -> None:
        """Run all of them, several at once."""
        wishes = self.wishes
        seeds = iter(range(wishes.seed, wishes.seed + wishes.count))
        jobs = min(wishes.jobs or processors(), wishes.count)
        running: list[RunningGroup] = []
        try:
            while True:
                while len(running) < jobs and (seed := next(seeds, None)) is not None:
                    running.append(RunningGroup(self.group, seed))
                if not running:
                    return
                _await_ended(running)
                for each in tuple(running):
                    late = wishes.timeout if each.is_over(wishes.timeout) else 0.0
                    future = each.look() or (each.look(timeout=late) if late else None)
                    if future is not None:
                        self._take(each, future)
                        running.remove(each)
                        each.kill()
        finally:
            for each in running:
                each.kill()

    def _take(self, running: RunningGroup, future: Future) -> None:
        self.done.append(future)
        if self.endings.takes(future):
            path = self.keeper.keep(running, future, f"future-{future.seed}")
            if path is not None:
                self.kept[future.seed] = path
        self.seen(future)


def _await_ended(running: list[RunningGroup]) -> None:
    """Wait until a process of one has ended, or for some time."""
    poll = select.poll()
    for each in running:
        for fd in each.pidfds:
            poll.register(fd, select.POLLIN)
    poll.poll(_LOOK)
