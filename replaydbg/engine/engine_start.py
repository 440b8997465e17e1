"""Start of the engine: the keeper, and the process from which all others of a session are cloned."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import replaydbg
from replaydbg.classes import dataclass
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.engine_socket import EngineSocket
from replaydbg.engine.keeping import KeeperOrders, Keeping, descriptors_of
from replaydbg.engine.protocol import VERSION
from replaydbg.errors import EngineLost, ReplaydbgError
from replaydbg.native import check_core
from replaydbg.replay.unpacked_logs import memory_file

_KEEPER = (
    f"import sys;sys.path.append({str(Path(replaydbg.__file__).parents[1])!r});"
    "from replaydbg.engine.keeper import main;sys.exit(main())"
)
"""Start the keeper of this installation, importing nothing from the working directory, which is not trusted."""

MOST_WRITTEN = {"totals": 16 << 20, "steps": 64 << 20, "output": 128 << 20, "raises": 64 << 20, "course": 128 << 20}
"""Bytes that the process which runs the whole program may write into each of its files."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of the process that runs the whole program."""

    totals: BinaryIO
    """The step clock's report, written at the end."""
    steps: BinaryIO
    """Lines before each event."""
    output: BinaryIO
    """Output to the standard streams, and when it was written."""
    raises: BinaryIO
    """The exceptions that were raised, and when."""

    def close(self) -> None:
        """Close all; again is harmless."""
        for file in (self.totals, self.steps, self.output, self.raises):
            file.close()


def new_files() -> Files:
    """Return new files in memory."""
    return Files(*(memory_file(name) for name in ("totals", "steps", "output", "raises")))


def _start_keeper(orders: KeeperOrders) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _KEEPER, repr(orders)],
        pass_fds=[*descriptors_of(orders).values()],
        stdin=subprocess.DEVNULL,
        # A Ctrl-C at the terminal is for the debugger alone.
        start_new_session=True,
    )


class Engine:
    """The keeper of a session, and what it was started with. Close it, or everything ends with this process."""

    def __init__(
        self,
        path: Path,
        *,
        current_source: bool = False,
        follows: bool = False,
        last_line: int = 0,
        course: bool = False,
    ) -> None:
        """Start the recording at `path`. Raises what `replay` does.

        `current_source` runs today's sources; with `follows` it is a live directory whose program runs. No process goes
        further than to `last_line`, a count of lines; 0: there is no such limit. `course`: the process that runs the
        whole program also records its own lines and variables, see `read_course`.
        """
        check_core()  # before anything is started
        self.files = new_files()
        self._course = memory_file("course") if course else None
        with ExitStack() as stack:
            own, keepers = socket.socketpair()
            root, roots = socket.socketpair()
            stack.callback(keepers.close)
            stack.callback(roots.close)
            orders = KeeperOrders(
                version=VERSION,
                path=str(path),
                current_source=current_source,
                follows=follows,
                last_line=last_line,
                keeper_fd=keepers.fileno(),
                fd=roots.fileno(),
                clock_fd=self.files.totals.fileno(),
                clock_steps_fd=self.files.steps.fileno(),
                output_fd=self.files.output.fileno(),
                raises_fd=self.files.raises.fileno(),
            )
            if self._course is not None:
                orders["course_fd"] = self._course.fileno()
            self._keeper: subprocess.Popen[bytes] | None = _start_keeper(orders)
        self._owns_keeper = True
        self.keeping = Keeping(own, self._keeper.pid)
        """The connection to the keeper."""
        self._own = own
        self.root: EngineProcess | None = EngineProcess(EngineSocket(root.detach()), self.keeping, 0, 0, 0)
        """The process before the program's first line; None: another process had it."""
        self.why_it_ends = ""
        """Why the recording ends before the program's own end; empty if it does not."""
        try:
            self._await_start()
        except BaseException:
            # It may be unpacking a large recording, and read its socket when that is done.
            self._keeper.kill()
            self.close()
            raise

    @classmethod
    def taken_over(cls, keeping: Keeping, files: Files, why_it_ends: str) -> Engine:
        """Return the engine that another process started."""
        engine = cls.__new__(cls)
        engine.why_it_ends = why_it_ends
        engine.keeping, engine.files = keeping, files
        engine._keeper, engine.root, engine._course = None, None, None
        engine._owns_keeper = True
        return engine

    @classmethod
    def of_child(cls, parent: Engine, files: Files, root: EngineProcess) -> Engine:
        """Return the engine of a child that the program of another one forks; it has the other one's keeper."""
        engine = cls.taken_over(parent.keeping, files, "")
        engine.root, engine._owns_keeper = root, False
        return engine

    def descriptors(self) -> list[int]:
        """Return what another process needs to take the engine over: the keeper's socket, then the files."""
        files = self.files
        return [
            self.keeping.fileno(),
            *(each.fileno() for each in (files.totals, files.steps, files.output, files.raises)),
        ]

    def read(self, name: str) -> bytes:
        """Return what was written into one of the files, by its name. Raises ForgedMessage if that is too much."""
        return self._read(getattr(self.files, name), name)

    def read_course(self) -> bytes:
        """Return the program's own lines with digests of their variables (see course.c); empty: it was not requested.

        Raises ForgedMessage.
        """
        return self._read(self._course, "course") if self._course is not None else b""

    def _read(self, file: BinaryIO, name: str) -> bytes:
        if os.fstat(file.fileno()).st_size > MOST_WRITTEN[name]:
            raise self.keeping.forged(f"it wrote more than {MOST_WRITTEN[name] >> 20:,} MiB of {name}")
        file.seek(0)
        return file.read(MOST_WRITTEN[name])

    def close(self) -> None:
        """End the keeper, and all processes of the session with it; again is harmless."""
        if self.root is not None:
            self.root.close()
        if self._owns_keeper:
            self.keeping.close()
        if self._keeper is not None:
            self._keeper.wait()
        self.files.close()
        if self._course is not None:
            self._course.close()

    def _await_start(self) -> None:
        greeting = b""
        while data := self._own.recv(65536):
            greeting += data
            if greeting.startswith(b"R") and greeting.endswith(b"\0"):
                assert self.root is not None, "it has just been made"
                pid, self.why_it_ends = ast.literal_eval(greeting[1:-1].decode())
                self.root.pid = self.keeping.verified(pid, has_gone=not self.root.is_open)
                return
        if greeting.startswith(b"E"):
            raise ReplaydbgError(greeting[1:].decode("utf-8", "replace"))
        raise EngineLost("the keeper ended before it started")
