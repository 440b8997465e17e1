"""A process of the engine as the debugger sees it: a socket that leads to it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

from replaydbg.engine import pictures, protocol, reports
from replaydbg.engine.engine_socket import ANSWER_SECONDS, MOST_MESSAGE, EngineSocket, Received
from replaydbg.engine.frames import Frames
from replaydbg.engine.keeping import Keeping
from replaydbg.engine.process_memory import resident
from replaydbg.engine.protocol import RunOrder, Watch
from replaydbg.engine.queries import Query, answer_shape
from replaydbg.engine.reports import EndReport, Frame, Located, Where, read_stack, read_where
from replaydbg.errors import AskFailed, EngineLost, ForgedMessage
from replaydbg.heap.limits import Limits, Which
from replaydbg.heap.snapshot import Snapshot
from replaydbg.log.coding.encode import varint
from replaydbg.log.coding.shapes import decoded

T = TypeVar("T")
A = TypeVar("A")

MEMORY = 512 << 20
"""Bytes of memory that an evaluation may allocate in addition to the program's."""

MOST_TAKEN_OUT = 400 << 20
"""Bytes of an object that is taken out of the past."""

HEAP_SECONDS = 600.0
"""The time limit of a heap snapshot."""


class EngineProcess:
    """A process at a moment, or on the way to one. Not for use by several threads.

    Every method that hears from the process raises ForgedMessage if that is not what the engine sends. The
    whole session has ended then.
    """

    def __init__(self, channel: EngineSocket, keeping: Keeping, pid: int, count: int, event: int) -> None:
        """Take its socket; `pid`, verified, or 0 if unknown; and its position: lines and events so far."""
        self._channel = channel
        self._keeping = keeping
        self.pid = pid
        self.count = count
        self.event = event
        self.where: Where | None = None
        """Its last reported position, if any."""

    def close(self) -> None:
        """Let the process end; again is harmless."""
        self._channel.close()

    def fileno(self) -> int:
        """Return the descriptor of its socket."""
        return self._channel.fileno()

    def kill(self) -> None:
        """End the process wherever it is; when it has ended, or is closed, that is harmless."""
        if self.pid and not self._channel.has_gone:
            self._keeping.kill(self.pid)
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether the other end of its socket is open: it has not ended."""
        return not self._channel.has_gone

    @property
    def is_alive(self) -> bool:
        """Whether it is alive; a stopped process sends nothing by itself."""
        return self._channel.is_silent

    def clone(self) -> EngineProcess:
        """Return another process at the same position. Raises EngineLost."""
        self._tell(protocol.CLONE)
        return self._hear_worker(self._hear(ANSWER_SECONDS), protocol.CLONED)

    def cpu_seconds(self) -> float:
        """Return its CPU time in seconds; 0 if unknown."""
        with suppress(OSError):
            # The clock of a process by its number, as clock_getcpuclockid(3) makes it.
            return time.clock_gettime(~self.pid << 3 | 2)
        return 0.0

    def run(
        self,
        order: RunOrder,
        *,
        left: Callable[[EngineProcess], None] | None = None,
        idle: Callable[[], None] | None = None,
    ) -> Where | EndReport:
        """Let it run; return its position then, or how the program ended.

        `left` receives each checkpoint that it leaves behind; `idle` is called now and then, and may raise to cancel
        (the process is useless then). Raises EngineLost.
        """
        self.start(order)
        return self.await_stop(left=left, idle=idle)

    def start(self, order: RunOrder) -> None:
        """Let it run; `await_stop` returns its position then. Raises EngineLost."""
        self.where = None
        self._tell(protocol.RUN, order.encode())

    def await_stop(
        self, *, left: Callable[[EngineProcess], None] | None = None, idle: Callable[[], None] | None = None
    ) -> Where | EndReport:
        """Return its next position: see `run`."""
        has_drifted = False
        while True:
            message = self._hear(idle=idle)
            if message.kind == protocol.LEFT:
                checkpoint = self._hear_worker(message, protocol.LEFT)
                if checkpoint.count <= self.count:
                    checkpoint.close()
                    raise self._forged("it sent checkpoints out of order")
                self.count, self.event = checkpoint.count, checkpoint.event
                if left is not None:
                    left(checkpoint)
                else:
                    checkpoint.close()
            elif message.kind == protocol.STOOD:
                self.where = self._read(read_where, message, protocol.STOOD)
                self.count, self.event = self.where.count, self.where.event
                return self.where
            elif message.kind == "X":
                raise EngineLost(f"it ended while something was evaluated: {self._reason(message.payload)}")
            else:
                ended = self._read(reports.read_ended, message, protocol.ENDED)
                if ended.kind != reports.DRIFT:
                    return ended
                if has_drifted:
                    raise self._forged("it reported twice that the garbage collector differs")
                has_drifted = True

    def space(self, seconds: float) -> None:
        """While it runs: leave checkpoints that far apart from now on, in seconds of CPU time."""
        self._tell(protocol.SPACE, varint(int(seconds * 1e9)))

    def look(self) -> Where:
        """Return its position. Raises EngineLost."""
        if self.where is None:
            self._tell(protocol.WHERE)
            self.where = self._hear_answer(read_where, protocol.STOOD)
        return self.where

    def standing(self) -> bytes:
        """Return its position as it reports it: what `read_where` reads. Raises EngineLost."""
        self._tell(protocol.WHERE)
        payload: bytes = self._hear_answer(lambda payload: (read_where(payload), payload), protocol.STOOD)[1]
        return payload

    def stack(self, lane: int | None = None) -> Frames:
        """Return the frames of a thread (default: the running one); none if it does not exist. Raises EngineLost."""
        if lane is None:
            where = self.look()
            lane, depth, first = where.lane, where.depth, where.stack
        else:
            depth, first = self._frames(lane, 0)
        return Frames(depth, first, partial(self._more_frames, lane, self.count))

    def _frames(self, lane: int, first: int) -> tuple[int, tuple[Frame, ...]]:
        self._tell(protocol.STACK, varint(lane) + varint(first))
        return self._hear_answer(read_stack, protocol.FRAMES)

    def _more_frames(self, lane: int, count: int, first: int) -> tuple[Frame, ...]:
        assert self.count == count, "it has moved on, and its frames have changed"
        return self._frames(lane, first)[1]

    def locate(self, watch: Watch) -> tuple[int, int]:
        """Return the addresses of the value that `watch` leads to, or of the object that has it as a part of its
        memory, and of its type; zeros if it does not exist."""
        return self.locate_each([watch])[0].object

    def locate_each(self, watches: Sequence[Watch]) -> list[Located]:
        """Return where the value of each watch lies; one copy of the process answers for all."""
        copy = self.clone()
        try:
            found = []
            for watch in watches:
                copy._tell(protocol.OBJECT, watch.encode())
                found.append(copy._hear_answer(reports.read_located, protocol.LIES))
            return found
        finally:
            copy.close()

    def become_child(
        self, orders: bytes, logs: Sequence[int], take_over: Callable[[list[int]], Sequence[int]] | None
    ) -> bool:
        """Become the replay of a child that the program forks later: see become_child() in engine.c.

        `logs`: descriptors of the child's logs. Returns whether it is a process that can run the whole program: then
        `take_over` was called with the bytes that were written for that so far into each file, and has returned the
        files into which it goes on. Without `take_over` that is not wanted. Raises EngineLost.
        """
        self._tell(protocol.BECOME, orders + varint(int(take_over is not None)))
        can, *written = self._hear_answer(reports.read_numbers, protocol.BECAME)
        files = take_over(written) if can and take_over is not None else ()
        self._channel.send_descriptors([*logs, *files])
        (failed,) = self._hear_answer(reports.read_numbers, protocol.BECAME)
        if failed:
            raise EngineLost("it cannot go on with the recording of the child")
        self.where = None
        return bool(can)

    def keep_track(self, number: int) -> None:
        """From here on remember what is freed, as freed before the snapshot of that number."""
        self._tell(protocol.FREED, varint(number))

    def begin_heap(self, limits: Limits, which: Which, *, number: int = 1, run: str = "") -> PendingSnapshot:
        """Let a copy take a snapshot of the reachable objects. Close what it returns. Raises EngineLost."""
        numbers = (limits.nodes, limits.edges, limits.items, limits.text, which == "all", number, 0)
        copy = self.clone()
        try:
            copy._tell(protocol.HEAP, b"".join(varint(int(each)) for each in numbers))
        except BaseException:
            copy.close()
            raise
        return PendingSnapshot(copy, limits, run)

    def ask(
        self,
        query: Query[A],
        *,
        memory: int = MEMORY,
        seconds: float = 5.0,
        changes: bool = False,
        idle: Callable[[], None] | None = None,
    ) -> A:
        """Return the result of a query at this moment.

        It runs in a throw-away copy of the process; with `changes` in the process itself, without a time limit.
        `memory`: bytes that the copy may allocate, 0 for any. `idle` is called now and then, and may raise to cancel.

        Raises EngineLost, and AskFailed if the query fails, or is not answered in time.
        """
        if changes:
            self._tell(protocol.CHANGE, query.encode())
            return self._answer(query, idle=idle)
        return self._divert(query, memory, False, seconds, idle, MOST_MESSAGE)

    def take_out(self, query: Query[A], *, seconds: float, idle: Callable[[], None] | None = None) -> A:
        """Return a result that may be long. The copy that makes it may read files. Raises as `ask`."""
        return self._divert(query, 0, True, seconds, idle, MOST_TAKEN_OUT)

    def _divert(
        self,
        query: Query[A],
        memory: int,
        may_read: bool,
        seconds: float,
        idle: Callable[[], None] | None,
        most: int,
    ) -> A:
        asking = self.begin_to_ask(query, memory=memory, may_read=may_read)
        try:
            return asking.value(seconds, idle, most=most)
        finally:
            asking.close()

    def begin_to_ask(self, query: Query[A], *, memory: int = MEMORY, may_read: bool = False) -> PendingAnswer[A]:
        """Ask as `ask` does, but do not wait for the answer: several can be asked at once. Close what it returns."""
        diversion = self.clone()
        try:
            diversion._tell(protocol.DIVERT, varint(memory) + varint(int(may_read)) + query.encode())
        except BaseException:
            diversion.close()
            raise
        return PendingAnswer(diversion, query)

    def _answer(
        self,
        query: Query[A],
        seconds: float = math.inf,
        idle: Callable[[], None] | None = None,
        most: int = MOST_MESSAGE,
    ) -> A:
        until = time.monotonic() + seconds

        def in_time() -> None:
            if time.monotonic() > until:
                raise AskFailed(f"it took longer than {seconds:g} s")
            if idle is not None:
                idle()

        try:
            message = self._hear(idle=in_time, most=most)
        except EngineLost:
            raise AskFailed("it ended the process in which it ran") from None
        if message.kind not in (protocol.ANSWER, "X"):
            raise self._forged(f"it sent {message.kind!r} instead of an answer")
        self._refuse_descriptor(message)
        if message.kind == "X":
            raise AskFailed(self._reason(message.payload))
        shape = answer_shape(query)
        return query.result(self._read(lambda payload: decoded(payload, shape, "answer"), message, protocol.ANSWER))

    def _hear_answer(self, read: Callable[[bytes], T], wanted: str) -> T:
        message = self._hear(ANSWER_SECONDS)
        if message.kind == protocol.ENDED or message.kind == "X":
            raise EngineLost(f"it ended instead of answering: {self._reason(message.payload)}")
        return self._read(read, message, wanted)

    def _hear_worker(self, message: Received, wanted: str) -> EngineProcess:
        """Return the process that a message is about."""
        if message.kind == protocol.ENDED and wanted == protocol.CLONED:
            raise EngineLost(f"it ended instead of being cloned: {self._reason(message.payload)}")
        if message.kind != wanted:
            raise self._forged(f"it sent {message.kind!r} instead of {wanted!r}")
        try:
            pid, count, event = reports.read_here(message.payload)
            if pid < 0 and message.fd is None:
                raise EngineLost(f"it could not be cloned: {os.strerror(-pid)}")
            if pid <= 0 or message.fd is None:
                raise ForgedMessage("it sent a checkpoint without its process")
            channel = EngineSocket.received(message.fd)
            try:
                pid = self._keeping.verified(pid, has_gone=channel.has_gone)
            except BaseException:
                channel.close()
                raise
        except ForgedMessage as error:
            raise self._forged(error.reason) from None
        return EngineProcess(channel, self._keeping, pid, count, event)

    def _read(self, read: Callable[[bytes], T], message: Received, wanted: str) -> T:
        if message.kind != wanted:
            raise self._forged(f"it sent {message.kind!r} instead of {wanted!r}")
        self._refuse_descriptor(message)
        try:
            return read(message.payload)
        except ForgedMessage as error:
            raise self._forged(error.reason) from None

    def _refuse_descriptor(self, message: Received) -> None:
        if message.fd is not None:
            os.close(message.fd)
            raise self._forged(f"it sent a descriptor with {message.kind!r}")

    def _reason(self, payload: bytes) -> str:
        try:
            return _reason(payload)
        except ForgedMessage as error:
            raise self._forged(error.reason) from None

    def _forged(self, reason: str) -> ForgedMessage:
        """End the session; return the error to raise."""
        self.close()
        return self._keeping.forged(reason)

    def _tell(self, kind: bytes, payload: bytes = b"") -> None:
        self._channel.send(kind, payload)

    def _hear(
        self, seconds: float = math.inf, *, idle: Callable[[], None] | None = None, most: int = MOST_MESSAGE
    ) -> Received:
        try:
            return self._channel.receive(idle, most=most, seconds=seconds)
        except EngineLost:
            raise
        except ForgedMessage as error:
            raise self._forged(error.reason) from None
        except BaseException:
            self.kill()  # an answer that was not awaited would be taken for the next one's
            raise


class PendingSnapshot:
    """A snapshot that a throw-away copy of a process takes. Close it."""

    def __init__(self, copy: EngineProcess, limits: Limits, run: str) -> None:
        self._copy, self._limits, self._run = copy, limits, run

    def snapshot(self, idle: Callable[[], None] | None = None) -> Snapshot:
        """Wait for the snapshot. Raises EngineLost, and what `idle` raises to cancel."""
        copy = self._copy
        message = copy._hear(HEAP_SECONDS, idle=idle)
        if message.kind == "X":
            failed = copy._read(reports.read_number, message, "X")
            raise EngineLost(f"its heap could not be read: {os.strerror(failed)}")
        if message.kind != protocol.PICTURE or message.fd is None:
            raise copy._forged("it sent no snapshot")
        most = pictures.most_bytes(self._limits, resident(copy.pid))
        try:
            return pictures.read_picture(message.fd, most, run=self._run)
        except ForgedMessage as error:
            raise copy._forged(error.reason) from None

    def close(self) -> None:
        """End the copy, whether or not it has finished."""
        self._copy.kill()


class PendingAnswer(Generic[A]):
    """A throw-away copy of a process is about to answer. Close it."""

    def __init__(self, diversion: EngineProcess, query: Query[A]) -> None:
        self._diversion, self._query = diversion, query

    def value(self, seconds: float, idle: Callable[[], None] | None, *, most: int = MOST_MESSAGE) -> A:
        """Wait for the result. Raises AskFailed if the query fails, or is not answered in time."""
        return self._diversion._answer(self._query, seconds, idle, most)

    def close(self) -> None:
        """End the copy wherever it is."""
        self._diversion.kill()


def _reason(payload: bytes) -> str:
    if payload[:1] == b"\n":  # a report of the core
        report = reports.read_ended(payload)
        if report.kind == reports.REFUSED:
            return f"it makes a call to the outside, which is not available in the past: {report.detail}"
        return report.reason
    return payload[:4000].decode("utf-8", "replace")
