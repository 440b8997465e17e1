"""A real dask cluster of this machine: a scheduler and workers, each a process of its own, on 127.0.0.1."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from tests.harness.waiting import wait_until

HOST = "127.0.0.1"


class LocalCluster:
    """A scheduler and its workers; a context manager, which ends them."""

    def __init__(
        self, directory: Path, *, workers: int = 2, threads: int = 1, cache_size: str = "1G", preload: str = ""
    ) -> None:
        """`threads` and `preload` (a module that they import at their start) are those of each worker."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.cache = directory / "cache"
        self._cache_size = cache_size
        self._threads, self._preload = threads, preload
        self._count = workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> LocalCluster:
        about = self.directory / "scheduler.json"
        self.scheduler = self._start(sys.executable, "scheduler", "--port", "0", "--scheduler-file", str(about))
        wait_until(lambda: about.exists() and about.stat().st_size, message=self.text)
        self.address = json.loads(about.read_text())["address"]
        self.workers = [self.add_worker(sys.executable, f"worker-{number}") for number in range(self._count)]
        self.wait_for(self._count)
        return self

    def wait_for(self, workers: int) -> None:
        """Wait until so many workers have registered."""
        log = self.directory / "cluster.txt"
        wait_until(lambda: log.read_text(errors="replace").count("Register worker") >= workers, message=self.text)

    def add_worker(self, python: str, name: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start a worker, and the nanny that starts it again when it is killed; return the nanny."""
        words = ["worker", self.address, "--nthreads", str(self._threads), "--name", name]
        words += ["--local-directory", str(self.directory), *(["--preload", self._preload] if self._preload else [])]
        mine = {"REPLAYDBG_WORKER_CACHE": str(self.cache), "REPLAYDBG_WORKER_CACHE_SIZE": self._cache_size}
        mine |= {"PYTHONPATH": str(Path(__file__).parents[2])} if self._preload else {}
        return self._start(python, *words, **mine | variables)

    def _start(self, python: str, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("REPLAYDBG_")}
        environment |= {"PYTHONWARNINGS": "ignore"} | variables
        command = [python, "-m", "dask", *words, "--host", HOST, "--no-dashboard"]
        with (self.directory / "cluster.txt").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_us,
            )
        self._processes.append(process)
        return process

    def kill_worker(self, number: int) -> bool:
        """Kill a worker's process, as the kernel does when memory is short; its nanny starts another one."""
        for pid in _children(self.workers[number].pid):
            if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return True
        return False

    @contextmanager
    def killing(self, seconds: float) -> Iterator[list[int]]:
        """Kill a worker every so many seconds while the block runs, one after the other; yield the list of kills."""
        is_over = threading.Event()
        kills: list[int] = []

        def kill() -> None:
            number = 0
            while not is_over.wait(seconds):
                with suppress(OSError):
                    if self.kill_worker(number % len(self.workers)):
                        kills.append(number % len(self.workers))
                number += 1

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            yield kills
        finally:
            is_over.set()
            thread.join()

    def text(self) -> str:
        """Return what the processes have written."""
        return (self.directory / "cluster.txt").read_text(errors="replace")[-4000:]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _end_with_us() -> None:
    """Have the kernel kill this process when the tests end, however they do."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (thread / "children").read_text().split()]
    return found
