"""One recorded run in a process of its own, so that several can go on at once."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from replaydbg.config import Settings
from replaydbg.errors import ReplaydbgError
from replaydbg.hunt.capture import Outside, captured, discard
from replaydbg.launch.interruption import forked
from replaydbg.launch.proc import has_proc
from replaydbg.record import record
from replaydbg.store.directory import live_path

GRACE = 2.0
"""Seconds that a program has to end after SIGTERM before it is killed: pytest and servers clean up then."""

_PID = struct.Struct("<q")
"""Precedes the facts in the file in which the recorder reports: the process id of the program; 0: not started yet."""


class Finished(NamedTuple):
    """The result of a run."""

    outside: Outside
    """Its exit code and what it wrote."""
    path: Path
    """Its recording."""
    events: int
    """Number of crossings in the recording."""
    error: str
    """Why there is no recording; empty: there is one."""
    is_overdue: bool
    """Whether it was ended because it took too long."""


class WantedRecordings(NamedTuple):
    """Which recordings are still wanted when a run is started."""

    failed: bool = True
    """Whether one of a run that fails."""
    passed: bool = True
    """Whether one of a run that passes."""


class RunInProgress(Protocol):
    """A run of the command that is being recorded."""

    fd: int
    """Readable when it has ended."""

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds until `remind` must be called; None: never."""

    def remind(self) -> None:
        """End the program if it takes too long."""

    def finish(self) -> Finished:
        """Return the result; to be called when the run has ended."""

    def kill(self) -> None:
        """End the run, and delete its recording."""


class RunStarter(Protocol):
    """Starts runs of a command."""

    def __call__(
        self, argv: list[str], output: Path, settings: Settings, *, timeout: float | None, keeping: WantedRecordings
    ) -> RunInProgress:
        """Start a run; `timeout` is the program's time limit in seconds."""


def start_here(
    argv: list[str], output: Path, settings: Settings, *, timeout: float | None, keeping: WantedRecordings
) -> RunInProgress:
    """Start a run on this machine; its recording is kept in any case."""
    return RecordingWorker(argv, output, settings, timeout=timeout)


def why_failed(finished: Finished, pattern: re.Pattern[bytes] | None, timeout: float | None) -> str:
    """Return why a run counts as failed: `exit code 1`, `killed by signal 11` ...; empty if it passed."""
    if finished.is_overdue:
        return f"took longer than {timeout:g} s"
    status = finished.outside.status
    if status:
        return f"exit code {status}" if status > 0 else f"killed by signal {-status}"
    if pattern is not None:
        for text in (finished.outside.output, finished.outside.errors):
            found = pattern.search(text)
            if found is not None:
                return f"it wrote {found[0].decode(errors='replace')!r}"
    return ""


class RecordingWorker:
    """A process that records a command once. It has no terminal: Ctrl-C reaches us alone, and its input is empty."""

    def __init__(self, argv: list[str], output: Path, settings: Settings, *, timeout: float | None) -> None:
        """Start the run; `timeout` is the program's time limit in seconds."""
        self.output = output
        self._stack = ExitStack()
        self._capture = self._stack.enter_context(captured())
        self._report = os.fdopen(os.memfd_create("replaydbg-hunt"), "w+b")
        self._stack.callback(self._report.close)
        self._ends = [] if timeout is None else [time.monotonic() + timeout, time.monotonic() + timeout + GRACE]
        self._is_overdue = False
        self.pid = os.fork()
        if self.pid == 0:
            self._record(argv, settings)
        self.fd = os.pidfd_open(self.pid)
        """Readable when it has ended."""
        self._stack.callback(os.close, self.fd)

    def _record(self, argv: list[str], settings: Settings) -> None:
        try:
            forked()
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            streams = self._capture.stdout.fileno(), self._capture.stderr.fileno()
            report = _recorded(argv, self.output, settings, streams, self._report.fileno())
            self._report.seek(_PID.size)
            self._report.write(json.dumps(asdict(report)).encode())
            self._report.flush()
        finally:
            # Never return into the caller's code: the state belongs to another process.
            os._exit(0)

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds until `remind` must be called; None: never."""
        return max(0.0, self._ends[0] - time.monotonic()) if self._ends else None

    def remind(self) -> None:
        """End the program if it takes too long: first with SIGTERM, then by killing it."""
        if not self._ends or self._ends[0] > time.monotonic():
            return
        self._is_overdue = True
        # The recorder passes SIGTERM on, and seals the recording, whatever ended the program.
        if len(self._ends) == 2:
            os.kill(self.pid, signal.SIGTERM)
        else:
            for pid in _children(self.pid) if has_proc() else self._program():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        del self._ends[0]

    def _program(self) -> list[int]:
        """Return the process id of the program, if it runs and /proc does not show it."""
        written = os.pread(self._report.fileno(), _PID.size, 0)
        pid = _PID.unpack(written)[0] if len(written) == _PID.size else 0
        with suppress(ProcessLookupError):
            # It may have ended, and its number be reused: the program is in the recorder's session, or has made its
            # own.
            return [pid] if pid and os.getsid(pid) in (self.pid, pid) else []
        return []

    def finish(self) -> Finished:
        """Return the result; to be called when the process has ended."""
        os.waitpid(self.pid, 0)
        self._report.seek(_PID.size)
        text = self._report.read()
        report = _Report(**json.loads(text)) if text else _Report(error="its recorder was killed")
        outside = self._capture.run(report.status)
        self._stack.close()
        return Finished(outside, Path(report.path or self.output), report.events, report.error, self._is_overdue)

    def kill(self) -> None:
        """Kill it with its program, and delete the recording."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._stack.close()
        discard(live_path(self.output))
        discard(self.output)


@dataclass(frozen=True, slots=True)
class _Report:
    """The report of the recorder's process."""

    status: int = 1
    path: str = ""
    """The recording; empty: it was not written."""
    events: int = 0
    error: str = ""
    """The reason why it was not written."""


def _recorded(argv: list[str], output: Path, settings: Settings, streams: tuple[int, int], report: int) -> _Report:
    def running(pid: int) -> None:
        os.pwrite(report, _PID.pack(pid), 0)

    try:
        result = record(
            argv,
            output=output,
            settings=settings,
            stdout=streams[0],
            stderr=streams[1],
            running=running,
            follows_activated=True,
        )
    except (ReplaydbgError, OSError) as error:
        return _Report(error=str(error))
    return _Report(result.status, str(result.path), result.events)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []  # it has ended
