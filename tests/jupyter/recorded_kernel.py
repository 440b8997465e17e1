"""A recorded kernel in a store of its own, and its cells run by jupyter_client, as Jupyter runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CELL_SECONDS = 120
SEALED_WITHIN = 120


class RecordedKernel:
    """A kernel that was started by an installed kernelspec."""

    def __init__(self, directory: Path, manager: Any) -> None:
        self.directory = directory
        self.manager = manager
        self.client = self._connected()

    def _connected(self) -> Any:
        client = self.manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=CELL_SECONDS)
        return client

    def run(self, source: str, *, typed: str = "") -> str:
        """Run a cell; return what it printed, its value or the name of its exception. `typed` answers `input()`."""
        found = []

        def take(message: Any) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                found.append(content["text"])
            elif message["msg_type"] == "execute_result":
                found.append(content["data"]["text/plain"])
            elif message["msg_type"] == "error":
                found.append(content["ename"])

        self.client.execute_interactive(
            source,
            timeout=CELL_SECONDS,
            allow_stdin=True,
            output_hook=take,
            stdin_hook=lambda message: self.client.input(typed),
        )
        return "".join(found)

    def restart(self) -> None:
        """Restart the kernel, as the button does."""
        self.client.stop_channels()
        self.manager.restart_kernel()
        self.client = self._connected()

    def kill(self) -> None:
        """Kill all of its processes."""
        os.killpg(os.getpgid(self.manager.provisioner.pid), signal.SIGKILL)

    def shut_down(self) -> float:
        """Shut it down; return the seconds that took."""
        self.client.stop_channels()
        begin = time.monotonic()
        self.manager.shutdown_kernel()
        return time.monotonic() - begin

    def sealed(self, name: str) -> Path:
        """Return a recording of the store once it is sealed."""
        path = self.directory / "store" / f"{name}.rdbg"
        until = time.monotonic() + SEALED_WITHIN
        while not path.exists():
            assert time.monotonic() < until, sorted(path.parent.iterdir())
            time.sleep(0.1)
        return path

    def asked(self, *words: str) -> str:
        """Return what a command prints; it must succeed."""
        command = [sys.executable, "-m", "replaydbg", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CELL_SECONDS, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


@contextmanager
def recorded_kernel(directory: Path, monkeypatch: Any) -> Iterator[RecordedKernel]:
    """Yield a kernel of a kernelspec that is installed for this test alone."""
    # Imported here: without Jupyter the tests are skipped.
    from jupyter_client.manager import KernelManager

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(directory / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(directory / "ipython"))
    monkeypatch.setenv("REPLAYDBG_STORE", str(directory / "store"))
    command = [sys.executable, "-m", "replaydbg", "jupyter", "install"]
    subprocess.run(command, check=True, capture_output=True, timeout=CELL_SECONDS)
    manager = KernelManager(kernel_name="replaydbg")
    manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kernel = RecordedKernel(directory, manager)
    try:
        yield kernel
    finally:
        kernel.client.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)
