"""A process of the engine, as the debugger has it: a socket that leads to it."""

from __future__ import annotations

import math
import mmap
import os
import select
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from replaydbg.engine import messages
from replaydbg.engine.frames import Frames
from replaydbg.engine.messages import Frame, Run, Watch, Where, read_stack, read_where
from replaydbg.errors import AskFailed, EngineLost
from replaydbg.heap.limits import Limits, Which
from replaydbg.heap.raw import read_raw
from replaydbg.heap.snapshot import Snapshot
from replaydbg.log.codec import decode_value
from replaydbg.log.encode import varint

MEMORY = 512 << 20
"""Bytes of memory that an evaluation may take, besides what the program has."""

_HEAD = struct.Struct("<I")


class Worker:
    """A process that stands at a moment, or runs to one. Not for several threads at once."""

    def __init__(self, fd: int, pid: int, count: int, event: int) -> None:
        """Take the socket `fd`; `pid`, 0 as long as it is not known, and where it stands: lines and events so far."""
        self._socket = socket.socket(fileno=fd)
        self._buffer = bytearray()
        self._passed: deque[int] = deque()
        self.pid = pid
        self.count = count
        self.event = event
        self.where: Where | None = None
        """Where it stood last, if it said so."""

    def close(self) -> None:
        """Let the process end; again is harmless."""
        self._socket.close()
        while self._passed:
            os.close(self._passed.popleft())

    def fileno(self) -> int:
        """Return the descriptor of its socket."""
        return self._socket.fileno()

    def kill(self) -> None:
        """End the process wherever it is; when it has ended, or is closed, that is harmless."""
        # The keeper waits for those that have ended, and their numbers may be other processes' then. While the other
        # end of the socket is open, it is this one's.
        if self.pid and not self._has_gone():
            with suppress(ProcessLookupError):  # it ends just now
                self._end_now()
        self.close()

    def _end_now(self) -> None:
        try:
            process = os.pidfd_open(self.pid)
        except ProcessLookupError:
            raise
        except (AttributeError, OSError):  # a kernel, a container or a Python without: what has been seen must do
            os.kill(self.pid, signal.SIGKILL)
            return
        try:
            if not self._has_gone():  # so it was there when the descriptor was opened, which cannot be another one's
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)

    def _has_gone(self) -> bool:
        if self._socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._socket, 0)  # a hang-up is told in any case
        return bool(poll.poll(0))

    @property
    def is_alive(self) -> bool:
        """Whether it still stands; one that stands says nothing by itself."""
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def clone(self) -> Worker:
        """Return another process that stands where this one does. Raises EngineLost."""
        self._tell(messages.CLONE)
        kind, payload = self._hear()
        if kind != messages.CLONED:
            raise EngineLost(f"it said {kind!r} when it was to be cloned")
        return self._passed_worker(payload)

    def cpu_seconds(self) -> float:
        """Return how long a processor has worked for it; 0 where that cannot be told."""
        with suppress(OSError):
            # The clock of a process by its number, as clock_getcpuclockid(3) makes it.
            return time.clock_gettime(~self.pid << 3 | 2)
        return 0.0

    def run(
        self,
        order: Run,
        *,
        left: Callable[[Worker], None] | None = None,
        idle: Callable[[], None] | None = None,
    ) -> Where | dict[str, Any]:
        """Let it go on; return where it stands then, or, as a dict, how the program ended.

        `left` is given each checkpoint that it leaves behind; `idle` is called now and then, and may raise to give up
        (the process is of no use then). Raises EngineLost.
        """
        self.start(order)
        return self.await_stop(left=left, idle=idle)

    def start(self, order: Run) -> None:
        """Let it go on; `await_stop` tells where it stands then. Raises EngineLost."""
        self.where = None
        self._tell(messages.RUN, order.encode())

    def await_stop(
        self, *, left: Callable[[Worker], None] | None = None, idle: Callable[[], None] | None = None
    ) -> Where | dict[str, Any]:
        """Return where it stands next: see `run`."""
        while True:
            kind, payload = self._hear(idle)
            if kind == messages.LEFT:
                checkpoint = self._passed_worker(payload)
                if left is not None:
                    left(checkpoint)
                else:
                    checkpoint.close()
            elif kind == messages.STOOD:
                self.where = read_where(payload)
                self.count, self.event = self.where.count, self.where.event
                return self.where
            elif kind == messages.ENDED:
                ended = decode_value(payload)
                assert isinstance(ended, dict), ended
                if ended.get("kind") != "drift":
                    return ended

    def space(self, seconds: float) -> None:
        """While it runs: leave checkpoints that far apart from now on, in seconds of CPU time."""
        self._tell(messages.SPACE, varint(int(seconds * 1e9)))

    def look(self) -> Where:
        """Return where it stands. Raises EngineLost."""
        if self.where is None:
            self._tell(messages.WHERE)
            self.where = read_where(self._hear_answer(messages.STOOD))
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
        return read_stack(self._hear_answer(messages.FRAMES))

    def _more_frames(self, lane: int, count: int, first: int) -> tuple[Frame, ...]:
        assert self.count == count, "it has gone on, and its frames are others"
        return self._frames(lane, first)[1]

    def locate(self, watch: Watch) -> tuple[int, int]:
        """Return where the value lies that `watch` leads to, and its type; zeros if it is not there."""
        copy = self.clone()
        try:
            copy._tell(messages.OBJECT, watch.encode())
            told: Any = decode_value(copy._hear_answer(messages.LIES))
            address, kind = told
            return address, kind
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
            kind, payload = copy._hear()
            if kind != messages.PICTURE:
                raise EngineLost(f"its heap could not be looked at: {os.strerror(_number(payload))}")
            fd = copy._passed.popleft()
        finally:
            copy.close()
        with os.fdopen(fd, "rb") as file, mmap.mmap(fd, 0, prot=mmap.PROT_READ) as data, memoryview(data) as view:
            del file
            return read_raw(view, run=run, is_trusted=True)

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

        In a throw-away copy of the process, unless `changes`: then in itself, and as long as it takes. `memory`: bytes
        that the copy may take more, 0 for any. `idle` is called now and then, and may raise to give up.

        Raises EngineLost; AskFailed if there is no answer, or none in time.
        """
        if changes:
            self._tell(messages.CHANGE, _written(question))
            return _read(self._answer(idle=idle))
        return _read(self._divert(question, memory, False, seconds, idle))

    def take_out(self, question: object, *, seconds: float, idle: Callable[[], None] | None = None) -> bytes:
        """Return an answer of `inside.py` as it comes. The copy that gives it may read files. Raises as `ask`."""
        return self._divert(question, 0, True, seconds, idle)

    def _divert(
        self, question: object, memory: int, may_read: bool, seconds: float, idle: Callable[[], None] | None
    ) -> bytes:
        asking = self.begin_to_ask(question, memory=memory, may_read=may_read)
        try:
            return asking.answer(seconds, idle)
        finally:
            asking.close()

    def begin_to_ask(self, question: object, *, memory: int = MEMORY, may_read: bool = False) -> Asking:
        """Ask as `ask` does, but do not wait for the answer: several can be asked at once. Close what it returns."""
        diversion = self.clone()
        try:
            diversion._tell(messages.DIVERT, varint(memory) + varint(int(may_read)) + _written(question))
        except BaseException:
            diversion.close()
            raise
        return Asking(diversion)

    def _hear_answer(self, wanted: str) -> bytes:
        kind, payload = self._hear()
        if kind != wanted:
            raise EngineLost(f"it ended instead of answering: {_reason(payload)}")
        return payload

    def _answer(self, seconds: float = math.inf, idle: Callable[[], None] | None = None) -> bytes:
        until = time.monotonic() + seconds

        def in_time() -> None:
            if time.monotonic() > until:
                raise AskFailed(f"it took longer than {seconds:g} s")
            if idle is not None:
                idle()

        try:
            kind, payload = self._hear(in_time)
        except EngineLost:
            raise AskFailed("it ended the process in which it was tried") from None
        if kind == messages.ANSWER:
            return payload
        raise AskFailed(_reason(payload))

    def _passed_worker(self, payload: bytes) -> Worker:
        told: Any = decode_value(payload)
        pid, count, event = told
        if pid < 0:
            raise EngineLost(f"it could not be cloned: {os.strerror(-pid)}")
        return Worker(self._passed.popleft(), pid, count, event)

    def _tell(self, kind: bytes, payload: bytes = b"") -> None:
        try:
            self._socket.sendall(_HEAD.pack(len(payload) + 1) + kind + payload)
        except OSError:
            raise EngineLost("it has ended") from None

    def _hear(self, idle: Callable[[], None] | None = None) -> tuple[str, bytes]:
        try:
            head = self._take(_HEAD.size, idle)
            body = self._take(_HEAD.unpack(head)[0], idle)
        except EngineLost:
            raise
        except BaseException:
            self.kill()  # an answer that nobody waited for would be taken for the next one's
            raise
        return chr(body[0]), body[1:]

    def _take(self, n: int, idle: Callable[[], None] | None) -> bytes:
        poll = select.poll()  # select() knows no descriptors from 1,024 on
        poll.register(self._socket, select.POLLIN)
        while len(self._buffer) < n:
            while idle is not None and not poll.poll(50):
                idle()
            try:
                data, fds, _, _ = socket.recv_fds(self._socket, 1 << 16, 8)
            except OSError:
                data, fds = b"", []
            if not data:
                raise EngineLost("it has ended")
            self._buffer += data
            self._passed.extend(fds)
        taken = bytes(self._buffer[:n])
        del self._buffer[:n]
        return taken


class Asking:
    """A question that a throw-away copy of a process is about to answer. Close it."""

    def __init__(self, diversion: Worker) -> None:
        self._diversion = diversion

    def answer(self, seconds: float, idle: Callable[[], None] | None) -> bytes:
        """Wait for it, as `inside.py` wrote it. Raises AskFailed if there is none, or none in time."""
        return self._diversion._answer(seconds, idle)

    def value(self, seconds: float, idle: Callable[[], None] | None) -> Any:
        """Wait for it, as a plain value. Raises AskFailed."""
        return _read(self.answer(seconds, idle))

    def close(self) -> None:
        """End the copy wherever it is."""
        self._diversion.kill()


def _read(answer: bytes) -> Any:
    # Imported here: whoever only travels does not ask.
    import ast

    return ast.literal_eval(answer.decode("utf-8", "surrogatepass"))


def _number(payload: bytes) -> int:
    number: Any = decode_value(payload)
    return int(number)


def _written(question: object) -> bytes:
    return repr(question).encode("utf-8", "surrogatepass")


def _reason(payload: bytes) -> str:
    if payload[:1] == b"\n":  # a report of the core
        report = decode_value(payload)
        if isinstance(report, dict) and report.get("kind") == "refused":
            return f"it asks for something outside the program, and in the past there is none: {report['detail']}"
        return str(report.get("detail") or report.get("kind")) if isinstance(report, dict) else "?"
    return payload.decode("utf-8", "replace")
