"""Starts the engine: the keeper, and the process from which all others of a session are cloned."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from replaydbg.engine.messages import VERSION
from replaydbg.engine.worker import Worker
from replaydbg.errors import EngineLost, ReplaydbgError


@dataclass(frozen=True, slots=True)
class Files:
    """Where the process that runs the whole program writes down what it met."""

    totals: BinaryIO
    """The step clock's report, written at the end."""
    steps: BinaryIO
    """Lines before each event."""
    output: BinaryIO
    """What was written to the standard streams, and when."""
    raises: BinaryIO
    """The exceptions that were raised, and when."""


class Engine:
    """The keeper of a session, and what it was started with. Close it, or everything ends with this process."""

    def __init__(
        self, path: Path, *, current_source: bool = False, follows: bool = False, last_line: int = 0
    ) -> None:
        """Start the recording at `path`. Raises what `replay` does.

        `current_source` runs today's sources; with `follows` it is a live directory whose program runs. No process goes
        further than to `last_line`, a count of lines; 0: there is no such limit.
        """
        with ExitStack() as stack:
            own, keepers = socket.socketpair()
            self._keeper_socket = own
            root, roots = socket.socketpair()
            stack.callback(keepers.close)
            stack.callback(roots.close)
            self.files = Files(*(_memory_file(name) for name in ("totals", "steps", "output", "raises")))
            orders = {
                "version": VERSION,
                "path": str(path),
                "current_source": current_source,
                "follows": follows,
                "last_line": last_line,
                "keeper_fd": keepers.fileno(),
                "fd": roots.fileno(),
                "clock_fd": self.files.totals.fileno(),
                "clock_steps_fd": self.files.steps.fileno(),
                "output_fd": self.files.output.fileno(),
                "raises_fd": self.files.raises.fileno(),
            }
            self._keeper: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-m", "replaydbg.engine.keeper", repr(orders)],
                pass_fds=[value for name, value in orders.items() if name.endswith("fd") and isinstance(value, int)],
                stdin=subprocess.DEVNULL,
                # A Ctrl-C at the terminal is for the debugger alone.
                start_new_session=True,
            )
        self.root: Worker | None = Worker(root.detach(), 0, 0, 0)
        """The process that stands before the program's first line; None: another process had it."""
        self.why_it_ends = ""
        """Why the recording ends before the program's own end; empty if it does not."""
        try:
            self._await_start()
        except BaseException:
            self.close()
            raise

    @classmethod
    def taken_over(cls, keeper_socket: socket.socket, files: Files, why_it_ends: str) -> Engine:
        """Return the engine that another process started."""
        engine = cls.__new__(cls)
        engine.why_it_ends = why_it_ends
        engine._keeper_socket, engine.files = keeper_socket, files
        engine._keeper, engine.root = None, None
        return engine

    def descriptors(self) -> list[int]:
        """Return what another process needs to take the engine over: the keeper's socket, then the files."""
        files = self.files
        return [
            self._keeper_socket.fileno(),
            *(each.fileno() for each in (files.totals, files.steps, files.output, files.raises)),
        ]

    def close(self) -> None:
        """End the keeper, and all processes of the session with it; again is harmless."""
        if self.root is not None:
            self.root.close()
        self._keeper_socket.close()
        if self._keeper is not None:
            self._keeper.wait()
        for file in (self.files.totals, self.files.steps, self.files.output, self.files.raises):
            file.close()

    def _await_start(self) -> None:
        said = b""
        while data := self._keeper_socket.recv(65536):
            said += data
            if said.startswith(b"R") and said.endswith(b"\0"):
                assert self.root is not None, "it has just been made"
                self.root.pid, self.why_it_ends = ast.literal_eval(said[1:-1].decode())
                return
        if said.startswith(b"E"):
            raise ReplaydbgError(said[1:].decode("utf-8", "replace"))
        raise EngineLost("the keeper ended before it had begun")


def _memory_file(name: str) -> BinaryIO:
    return os.fdopen(os.memfd_create(f"replaydbg-{name}"), "w+b")
