"""The progress of `replaydbg bisect commits`, on stderr and at a terminal only."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from replaydbg.commits.progress import SearchProgress, Watcher


@contextmanager
def watching(*, is_quiet: bool) -> Iterator[Watcher]:
    """Yield a watcher that shows the progress of a search while it runs."""
    if is_quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda progress: None
        return
    # Imported here: only output to a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("bisecting", total=None, left="")

        def show(progress: SearchProgress) -> None:
            steps = math.ceil(math.log2(progress.suspects)) if progress.suspects > 1 else 0
            looked = len(progress.looked)
            names = ", ".join(name[:10] for name in progress.running)
            left = f"{progress.suspects} commits left, about {steps} tests" if steps else ""
            what = f"testing {names}" if names else "bisecting"
            bar.update(task, completed=looked, total=looked + steps, description=what, left=left)

        yield show
