"""One future: the process in which it runs, and what came of it."""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from enum import Enum
from hashlib import blake2b
from pathlib import Path

from replaydbg.classes import dataclass, replace
from replaydbg.errors import ForgedMessage
from replaydbg.events.records import Control, ControlKind, Entry, Event
from replaydbg.events.run_facts import GateRow
from replaydbg.events.show import show_crossing
from replaydbg.futures.of_tests import ending_of_test
from replaydbg.futures.schedules.decisions import Decision, read_decisions
from replaydbg.futures.schedules.given import FutureSchedule
from replaydbg.futures.standing import FutureFiles, StandingReplay
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.log.entries.stream import LogStream
from replaydbg.log.reader import Recording
from replaydbg.replay.ending import Uncaught, read_ending
from replaydbg.replay.launcher import MOST_WRITTEN
from replaydbg.replay.report import ReplayStop, read_report
from replaydbg.replay.unpacked_logs import memory_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

DEADLOCK = 5
"""The exit code of a program whose threads all wait for each other (EXIT_DEADLOCK in the core)."""
_IN_LIBRARY = re.compile(r'File "(?:<frozen |[^"]*/lib/python3[.][0-9]+/)')
"""A frame of the interpreter's own library, or of an installed package."""
_MOST_SHOWN = 4096
"""Bytes at the end of the output in which its last line is looked for."""


class FutureVerdict(Enum):
    """The verdict of a future."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    """It needed something from outside, or the tool could not go on with it: neither."""


@dataclass(frozen=True, slots=True)
class Future:
    """The outcome of one future."""

    seed: int
    verdict: FutureVerdict
    status: int
    """Its exit code; of an inconclusive one it means nothing."""
    exception: Uncaught | None
    """The exception that ended its main thread."""
    is_deadlock: bool
    why: str
    """Of an inconclusive one: what it needed, and at which line; empty otherwise."""
    last_line: str
    """The last line that it printed after the moment, on standard error or else on standard output."""
    digest: str
    """Of all that it printed."""
    events: int
    """All events of its log, those before the moment included."""
    cpu_seconds: float
    """Of the future alone."""
    is_of_test: bool = False
    """Whether it ended with a test, and not with the program."""
    is_of_group: bool = False
    """Whether it is of several processes."""
    ended_by: int = 0
    """The signal that ended its process; 0: none."""
    process: int = 0
    """Of a group: the number of the process that decided how it ended; 0: all of them."""

    @property
    def kind(self) -> str:
        """How it ended, in a few words, without the exception's text: futures with the same one are alike."""
        return f"{self._of_process}{self._kind}"

    @property
    def _of_process(self) -> str:
        return f"process {self.process}: " if self.process else ""

    @property
    def _kind(self) -> str:
        if self.verdict is FutureVerdict.INCONCLUSIVE:
            return self.why
        if self.is_deadlock:
            return f"deadlock: every {'process' if self.is_of_group and not self.process else 'thread'} waits"
        if self.exception is None:
            return f"exit code {self.status}"
        place = self.exception.place
        return f"{self.exception.type} at {place.file}:{place.line}" if place is not None else self.exception.type

    @property
    def ending(self) -> str:
        """The same in one line with the exception's text."""
        if self.exception is None or self.is_deadlock:
            return self.kind
        return f"{self._of_process}{self.exception}"


class RunningFuture:
    """A future whose process runs. `finish` it, or `kill` it."""

    def __init__(
        self,
        standing: StandingReplay,
        seed: int,
        schedule: FutureSchedule | None = None,
        faults: Sequence[bytes] = (),
        more: Sequence[int] = (),
    ) -> None:
        """Start it.

        `faults`: as the core takes them, see `futures.faults.fault_orders`; `more`: descriptors that it gets besides.
        """
        self.seed, self.schedule = seed, schedule
        self._stack = ExitStack()
        names = ("log", "world", "report", "ending", "output", "errors", "schedule")
        files = tuple(self._stack.enter_context(memory_file(name)) for name in names)
        self.log, self.world, self._report, self._ending, self._output, self._errors = files[:6]
        self._schedule = files[6]
        if schedule is not None:
            self._schedule.write(schedule.encoded())
            self._schedule.flush()
        self._pid = 0
        try:
            self._pid = standing.make(seed, FutureFiles(*(each.fileno() for each in files)), faults, more)
            self.pidfd = os.pidfd_open(self._pid)
            """Can be read when it has ended."""
            self._stack.callback(os.close, self.pidfd)
        except BaseException:
            self.kill()
            raise
        self.began = time.monotonic()

    def is_over(self, timeout: float) -> bool:
        """Whether it has computed for so many seconds. On a busy machine that takes longer, up to ten times as long."""
        passed = time.monotonic() - self.began
        return passed >= timeout and (passed >= 10 * timeout or self.computed() >= timeout)

    def computed(self) -> float:
        """Return its CPU time in seconds so far; without /proc, all time that has passed."""
        try:
            fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()
        except OSError:
            return time.monotonic() - self.began
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def has_ended(self) -> bool:
        """Whether its process has ended."""
        return bool(select.select([self.pidfd], [], [], 0)[0])

    def finish(self, recording: Recording, *, timeout: float = 0.0) -> Future:
        """Wait for its end; return what came of it. The files stay open.

        `timeout`: it is killed now, because it took longer than so many seconds; 0: it has ended, or will.
        """
        if timeout:
            os.kill(self._pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._pid, 0)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        return self._found(recording, code, cpu, f"it still ran after {timeout:g} s" if timeout else "")

    def _found(self, recording: Recording, code: int, cpu: float, why: str) -> Future:
        stop, ended_by = _stop(self._report), 0 if why else max(-code, 0)
        is_deadlock = stop is not None and stop.kind == "deadlock"
        exception = None
        if not why and stop is not None and stop.kind == "test":
            exception, code, why = ending_of_test(stop.detail)
        elif not why and (stop is None or is_deadlock):
            exception, why = self._exception(recording, code, is_deadlock=is_deadlock)
        elif not why and stop is not None:
            why = reason_of(stop)
        status = DEADLOCK if is_deadlock else code
        is_failure = is_deadlock or exception is not None or status != 0
        verdict = FutureVerdict.INCONCLUSIVE if why else FutureVerdict.FAILED if is_failure else FutureVerdict.PASSED
        last_line, digest = self._printed()
        exception = _with_text(exception, _read(self._errors, MOST_WRITTEN))
        is_of_test = stop is not None and stop.kind == "test"
        header = read_log_header(_read(self.log, LOG_HEADER))
        events = header.crossings if header is not None else 0
        return Future(
            self.seed,
            verdict,
            status,
            exception,
            is_deadlock,
            why,
            last_line,
            digest,
            events,
            cpu,
            is_of_test,
            ended_by=ended_by,
        )

    def _exception(self, recording: Recording, code: int, *, is_deadlock: bool) -> tuple[Uncaught | None, str]:
        """Return the exception that ended it, and why nothing is known of its end; empty: it is."""
        if is_deadlock:
            return None, ""
        if code < 0:
            return None, f"signal {-code} ended its process"
        data = _read(self._ending, MOST_WRITTEN)
        if not data:
            return None, f"its process ended (exit code {code}) before the program did"
        try:
            return read_ending(data, recording).exception, ""
        except ForgedMessage as error:
            return None, str(error)

    def _printed(self) -> tuple[str, str]:
        """Return the last line that was printed, and the digest of all."""
        whole = blake2b(digest_size=16)
        parts = [_read(each, MOST_WRITTEN) for each in (self._output, self._errors)]
        for part in parts:
            whole.update(len(part).to_bytes(8, "little") + part)
        text = next((part for part in reversed(parts) if part.strip()), b"")
        last = text[-_MOST_SHOWN:].decode(errors="replace").rstrip().rpartition("\n")[2]
        return last.strip(), whole.hexdigest()

    def decisions(self) -> list[Decision]:
        """Return the decisions that its schedule was to report, when it has ended. Raises ForgedMessage."""
        data = _read(self._schedule, MOST_WRITTEN)
        return read_decisions(data[len(self.schedule.encoded()) :]) if self.schedule is not None else []

    def entries(self, gates: Sequence[GateRow]) -> Iterator[Entry]:
        """Yield the entries of its log, those before the moment included, when it has ended."""
        self.log.seek(0)
        header = read_log_header(self.log.read(LOG_HEADER))
        size = header.committed - LOG_HEADER if header is not None else 0
        yield from LogStream(iter([self.log.read(size)]), total=size, stored=size, gates=gates).entries()

    def own_entries(self, event: int, gates: Sequence[GateRow]) -> Iterator[Entry]:
        """Yield the entries of its log after `event`, the last one before the moment, when it has ended."""
        begins = False
        for entry in self.entries(gates):
            is_later = isinstance(entry, Event) and entry.number > event
            begins = begins or is_later or (isinstance(entry, Control) and _is_own(entry, event))
            if begins:
                yield entry

    def kill(self) -> None:
        """End its process, if it has not ended, and close the files."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0
        self._stack.close()


def _is_own(entry: Control, event: int) -> bool:
    """Whether an entry is of the future, and not of what it has in common: a fault is noted before the call's event."""
    is_fault = entry.note is not None and entry.note[0] == "fault"
    return entry.kind is ControlKind.CHAOS or (is_fault and entry.after >= event)


def _with_text(exception: Uncaught | None, errors: bytes) -> Uncaught | None:
    """Return the exception with its text as it was printed, where only code of the program could make it."""
    if exception is None or exception.text is not None:
        return exception
    last = errors.decode(errors="replace").rstrip().rpartition("\n")[2]
    name, colon, text = last.partition(": ")
    is_it = colon and name.rpartition(".")[2] == exception.type.rpartition(".")[2]
    return replace(exception, text=text) if is_it else exception


def reason_of(stop: ReplayStop) -> str:
    """Return why a future has no verdict: what it needed from outside, and at which line."""
    own = [frame for frame in stop.stack if not _IN_LIBRARY.search(frame)]
    where = f" at {_place((own or stop.stack)[-1])}" if stop.stack else ""
    if stop.kind == "outside":
        shown = (stop.detail,) if stop.detail else ()
        arguments = stop.arguments if isinstance(stop.arguments, tuple) else shown
        return f"needs {show_crossing(stop.gate, arguments) if stop.gate else stop.detail}{where}"
    if stop.kind == "refused":
        return f"needs the system call {stop.detail}{where}"
    return f"{stop.kind}: {stop.detail}{where}" if stop.detail else f"{stop.kind}{where}"


def _place(frame: str) -> str:
    """Return a frame as the report has it (`File "x", line 3, in f`) in the form `x:3`."""
    head, _, rest = frame.partition('", line ')
    return f"{head.removeprefix('File ' + chr(34))}:{rest.partition(',')[0]}"


def _stop(file: BinaryIO) -> ReplayStop | None:
    data = _read(file, MOST_WRITTEN)
    return read_report(data) if data else None


def _read(file: BinaryIO, most: int) -> bytes:
    file.seek(0)
    return file.read(most)
