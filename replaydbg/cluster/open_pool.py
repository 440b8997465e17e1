"""Open the pool that runs tasks: of this machine, or of a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from replaydbg.cluster.tasks import TaskPool


@contextmanager
def open_pool(
    scheduler: str = "", *, jobs: int = 1, notice: Callable[[str], None] = lambda text: None
) -> Iterator[TaskPool]:
    """Yield a pool on the workers of a scheduler such as `tcp://host:8786`, or of `jobs` tasks at once if it is empty.

    All tasks that are left are ended afterwards. `notice` is called with clauses for the user. Raises UsageError if
    dask.distributed is not installed, SchedulerLost if the scheduler does not answer.
    """
    pool: TaskPool
    if scheduler:
        # Imported here: only clusters need dask.
        from replaydbg.cluster.scheduling.scheduler_pool import SchedulerPool

        pool = SchedulerPool(scheduler, notice)
    else:
        from replaydbg.cluster.local_pool import LocalPool

        pool = LocalPool(jobs)
    try:
        yield pool
    finally:
        pool.close()
