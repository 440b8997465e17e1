"""A process of the engine, as the debugger has it: a socket that leads to it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from replaydbg.engine import messages, pictures
from replaydbg.engine.answers import shape_of
from replaydbg.engine.channel import ANSWER_SECONDS, MOST_MESSAGE, Channel, Received
from replaydbg.engine.frames import Frames
from replaydbg.engine.keeping import Keeping
from replaydbg.engine.memory import resident
from replaydbg.engine.messages import Frame, RunOrder, Watch, Where, read_stack, read_where
from replaydbg.errors import AskFailed, EngineLost, ForgedMessage
from replaydbg.heap.limits import Limits, Which
from replaydbg.heap.snapshot import Snapshot
from replaydbg.log.encode import varint
from replaydbg.log.shapes import decoded

T = TypeVar("T")

MEMORY = 512 << 20
"""Bytes of memory that an evaluation may take, besides what the program has."""

MOST_TAKEN_OUT = 400 << 20
"""Bytes of an object that is taken out of the past."""

HEAP_SECONDS = 600.0
"""So long a look at a heap may take."""


class EngineProcess:
    """A process that stands at a moment, or runs to one. Not for several threads at once.

    Every method that hears from the process raises ForgedMessage if that is not what the engine sends. The
    whole session has ended then.
    """

    def __init__(self, channel: Channel, keeping: Keeping, pid: int, count: int, event: int) -> None:
        """Take its socket; `pid`, verified, or 0: not known; and where it stands: lines and events so far."""
        self._channel = channel
        self._keeping = keeping
        self.pid = pid
        self.count = count
        self.event = event
        self.where: Where | None = None
        """Where it stood last, if it said so."""

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
        """Whether it still stands; one that stands says nothing by itself."""
        return self._channel.is_silent

    def clone(self) -> EngineProcess:
        """Return another process that stands where this one does. Raises EngineLost."""
        self._tell(messages.CLONE)
        return self._hear_worker(self._hear(ANSWER_SECONDS), messages.CLONED)

    def cpu_seconds(self) -> float:
        """Return how long a processor has worked for it; 0 where that cannot be told."""
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
    ) -> Where | dict[str, Any]:
        """Let it go on; return where it stands then, or, as a dict, how the program ended.

        `left` is given each checkpoint that it leaves behind; `idle` is called now and then, and may raise to give up
        (the process is of no use then). Raises EngineLost.
        """
        self.start(order)
        return self.await_stop(left=left, idle=idle)

    def start(self, order: RunOrder) -> None:
        """Let it go on; `await_stop` tells where it stands then. Raises EngineLost."""
        self.where = None
        self._tell(messages.RUN, order.encode())

    def await_stop(
        self, *, left: Callable[[EngineProcess], None] | None = None, idle: Callable[[], None] | None = None
    ) -> Where | dict[str, Any]:
        """Return where it stands next: see `run`."""
        has_drifted = False
        while True:
            told = self._hear(idle=idle)
            if told.kind == messages.LEFT:
                checkpoint = self._hear_worker(told, messages.LEFT)
                if checkpoint.count <= self.count:
                    checkpoint.close()
                    raise self._forged("it sent checkpoints out of order")
                self.count, self.event = checkpoint.count, checkpoint.event
                if left is not None:
                    left(checkpoint)
                else:
                    checkpoint.close()
            elif told.kind == messages.STOOD:
                self.where = self._read(read_where, told, messages.STOOD)
                self.count, self.event = self.where.count, self.where.event
                return self.where
            else:
                ended = self._read(messages.read_ended, told, messages.ENDED)
                if ended["kind"] != "drift":
                    return ended
                if has_drifted:
                    raise self._forged("it reported twice that the garbage collector differs")
                has_drifted = True

    def space(self, seconds: float) -> None:
        """While it runs: leave checkpoints that far apart from now on, in seconds of CPU time."""
        self._tell(messages.SPACE, varint(int(seconds * 1e9)))

    def look(self) -> Where:
        """Return where it stands. Raises EngineLost."""
        if self.where is None:
            self._tell(messages.WHERE)
            self.where = self._hear_answer(read_where, messages.STOOD)
        return self.where

    def stack(self, lane: int | None = None) -> Frames:
        """Return the frames of a lane, or of the one that runs; none if there is no such lane. Raises EngineLost."""
        if lane is None:
            where = self.look()
            lane, depth, first = where.lane, where.depth, where.stack
        else:
            depth, first = self._frames(lane, 0)
        return Frames(depth, first, partial(self._more_frames, lane, self.count))

    def _frames(self, lane: int, first: int) -> tuple[int, tuple[Frame, ...]]:
        self._tell(messages.STACK, varint(lane) + varint(first))
        return self._hear_answer(read_stack, messages.FRAMES)

    def _more_frames(self, lane: int, count: int, first: int) -> tuple[Frame, ...]:
        assert self.count == count, "it has moved on, and its frames have changed"
        return self._frames(lane, first)[1]

    def locate(self, watch: Watch) -> tuple[int, int]:
        """Return where the value lies that `watch` leads to, and its type; zeros if it does not exist."""
        copy = self.clone()
        try:
            copy._tell(messages.OBJECT, watch.encode())
            return copy._hear_answer(messages.read_located, messages.LIES)
        finally:
            copy.close()

    def keep_track(self, number: int) -> None:
        """From here on remember what is freed, as freed before the snapshot of that number."""
        self._tell(messages.FREED, varint(number))

    def heap(self, limits: Limits, which: Which, *, number: int = 1, time_ns: int = 0, run: str = "") -> Snapshot:
        """Return a snapshot of the objects that the program can reach here. Raises EngineLost."""
        numbers = (limits.nodes, limits.edges, limits.items, limits.text, which == "all", number, time_ns)
        copy = self.clone()
        try:
            copy._tell(messages.HEAP, b"".join(varint(int(each)) for each in numbers))
            told = copy._hear(HEAP_SECONDS)
            if told.kind == "X":
                failed = copy._read(messages.read_number, told, "X")
                raise EngineLost(f"its heap could not be read: {os.strerror(failed)}")
            if told.kind != messages.PICTURE or told.fd is None:
                raise copy._forged("it sent no snapshot")
            try:
                return pictures.read_picture(told.fd, pictures.most_bytes(limits, resident(copy.pid)), run=run)
            except ForgedMessage as error:
                raise copy._forged(error.reason) from None
        finally:
            copy.close()

    def ask(
        self,
        question: object,
        *,
        memory: int = MEMORY,
        seconds: float = 5.0,
        changes: bool = False,
        idle: Callable[[], None] | None = None,
    ) -> Any:
        """Run `inside.py` with `question`, a plain value, at this moment and return its answer, another one.

        The answer has the shape that answers.py gives for the question, or is a dict with the one key `failed`.

        In a throw-away copy of the process, unless `changes`: then in itself, and as long as it takes. `memory`: bytes
        that the copy may take more, 0 for any. `idle` is called now and then, and may raise to give up.

        Raises EngineLost; AskFailed if there is no answer, or none in time.
        """
        if changes:
            self._tell(messages.CHANGE, _written(question))
            return self._answer(shape_of(question), idle=idle)
        return self._divert(question, memory, False, seconds, idle, MOST_MESSAGE)

    def take_out(self, question: object, *, seconds: float, idle: Callable[[], None] | None = None) -> Any:
        """Return an answer of `inside.py` that may be long. The copy that gives it may read files. Raises as `ask`."""
        return self._divert(question, 0, True, seconds, idle, MOST_TAKEN_OUT)

    def _divert(
        self,
        question: object,
        memory: int,
        may_read: bool,
        seconds: float,
        idle: Callable[[], None] | None,
        most: int,
    ) -> Any:
        asking = self.begin_to_ask(question, memory=memory, may_read=may_read)
        try:
            return asking.value(seconds, idle, most=most)
        finally:
            asking.close()

    def begin_to_ask(self, question: object, *, memory: int = MEMORY, may_read: bool = False) -> PendingAnswer:
        """Ask as `ask` does, but do not wait for the answer: several can be asked at once. Close what it returns."""
        diversion = self.clone()
        try:
            diversion._tell(messages.DIVERT, varint(memory) + varint(int(may_read)) + _written(question))
        except BaseException:
            diversion.close()
            raise
        return PendingAnswer(diversion, shape_of(question))

    def _answer(
        self, shape: object, seconds: float = math.inf, idle: Callable[[], None] | None = None, most: int = MOST_MESSAGE
    ) -> Any:
        until = time.monotonic() + seconds

        def in_time() -> None:
            if time.monotonic() > until:
                raise AskFailed(f"it took longer than {seconds:g} s")
            if idle is not None:
                idle()

        try:
            told = self._hear(idle=in_time, most=most)
        except EngineLost:
            raise AskFailed("it ended the process in which it ran") from None
        if told.kind not in (messages.ANSWER, "X"):
            raise self._forged(f"it sent {told.kind!r} instead of an answer")
        self._refuse_descriptor(told)
        if told.kind == "X":
            raise AskFailed(self._reason(told.payload))
        return self._read(lambda payload: decoded(payload, shape, "answer"), told, messages.ANSWER)

    def _hear_answer(self, read: Callable[[bytes], T], wanted: str) -> T:
        told = self._hear(ANSWER_SECONDS)
        if told.kind == messages.ENDED or told.kind == "X":
            raise EngineLost(f"it ended instead of answering: {self._reason(told.payload)}")
        return self._read(read, told, wanted)

    def _hear_worker(self, told: Received, wanted: str) -> EngineProcess:
        """Return the process that a message is about."""
        if told.kind == messages.ENDED and wanted == messages.CLONED:
            raise EngineLost(f"it ended instead of being cloned: {self._reason(told.payload)}")
        if told.kind != wanted:
            raise self._forged(f"it sent {told.kind!r} instead of {wanted!r}")
        try:
            pid, count, event = messages.read_here(told.payload)
            if pid < 0 and told.fd is None:
                raise EngineLost(f"it could not be cloned: {os.strerror(-pid)}")
            if pid <= 0 or told.fd is None:
                raise ForgedMessage("it sent a checkpoint without its process")
            channel = Channel.received(told.fd)
            try:
                pid = self._keeping.verified(pid, has_gone=channel.has_gone)
            except BaseException:
                channel.close()
                raise
        except ForgedMessage as error:
            raise self._forged(error.reason) from None
        return EngineProcess(channel, self._keeping, pid, count, event)

    def _read(self, read: Callable[[bytes], T], told: Received, wanted: str) -> T:
        if told.kind != wanted:
            raise self._forged(f"it sent {told.kind!r} instead of {wanted!r}")
        self._refuse_descriptor(told)
        try:
            return read(told.payload)
        except ForgedMessage as error:
            raise self._forged(error.reason) from None

    def _refuse_descriptor(self, told: Received) -> None:
        if told.fd is not None:
            os.close(told.fd)
            raise self._forged(f"it sent a descriptor with {told.kind!r}")

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
            self.kill()  # an answer that nobody waited for would be taken for the next one's
            raise


class PendingAnswer:
    """A throw-away copy of a process is about to answer. Close it."""

    def __init__(self, diversion: EngineProcess, shape: object) -> None:
        """`shape` is what the answer must have: see `shapes.fits`."""
        self._diversion, self._shape = diversion, shape

    def value(self, seconds: float, idle: Callable[[], None] | None, *, most: int = MOST_MESSAGE) -> Any:
        """Wait for the answer, a plain value. Raises AskFailed if there is none, or none in time."""
        return self._diversion._answer(self._shape, seconds, idle, most)

    def close(self) -> None:
        """End the copy wherever it is."""
        self._diversion.kill()


def _written(question: object) -> bytes:
    return repr(question).encode("utf-8", "surrogatepass")


def _reason(payload: bytes) -> str:
    if payload[:1] == b"\n":  # a report of the core
        report = messages.read_ended(payload)
        if report["kind"] == "refused":
            detail = report.get("detail")
            return f"it asks for something outside the program, which is not available in the past: {detail}"
        return str(report.get("detail") or report["kind"])
    return payload[:4000].decode("utf-8", "replace")
