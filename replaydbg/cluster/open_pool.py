"""Open the pool that runs tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from replaydbg.cluster.local_pool import LocalPool
from replaydbg.cluster.tasks import TaskPool


@contextmanager
def open_pool(*, jobs: int = 1) -> Iterator[TaskPool]:
    """Yield a pool of `jobs` tasks at once; all tasks that are left are ended afterwards."""
    pool = LocalPool(jobs)
    try:
        yield pool
    finally:
        pool.close()
