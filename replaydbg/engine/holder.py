"""A process that keeps the checkpoints of a run for the debugger that may be opened soon.

A replay runs behind the recording, event by event, on another core: nothing is done in the program's own process.
When the recording is sealed all its checkpoints exist, and the debugger takes them over, by a socket that is named
after the recording.
Run as `python -m replaydbg.engine.holder LIVE SEALED`.
"""

from __future__ import annotations

import hashlib
import os
import select
import socket
import struct
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.engine_socket import MOST_MESSAGE, EngineSocket
from replaydbg.engine.engine_start import Engine, Files
from replaydbg.engine.keeping import Keeping
from replaydbg.engine.reports import COMPUTING, END, EXIT, EndReport, end_report
from replaydbg.engine.travel import Travel
from replaydbg.errors import ForgedMessage, ReplaydbgError
from replaydbg.log.coding.encode import encode_value
from replaydbg.log.coding.shapes import COUNT, ListOf, decoded
from replaydbg.log.reader import open_recording
from replaydbg.replay.result import ended_by_itself, why_it_ends

LONGEST = 3600.0
"""Seconds after which no debugger is expected any more."""

_AT_ONCE = 100
"""Descriptors in one message; the kernel takes 253."""

_HELD = ({"kind": str}, COUNT, ListOf((COUNT, COUNT, COUNT)))
"""How the program ended, the keeper's process, and the checkpoints: process, lines, events."""


def socket_name(recording: Path) -> str:
    """Return the name, in the namespace where nothing is left behind, under which its checkpoints are held."""
    path = os.fsencode(recording.absolute())
    return f"\0replaydbg-held-{os.getuid()}-{hashlib.sha256(path).hexdigest()[:40]}"


def main() -> int:
    """Follow, hold, hand over."""
    live, sealed = Path(sys.argv[1]), Path(sys.argv[2])
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(socket_name(sealed))
    except OSError:
        return 1  # one holds already
    try:
        travel = _begin(live, sealed)
        ended = travel.first_pass()
    except (ReplaydbgError, OSError):
        return 1  # the debugger replays the recording itself, and reports the error
    if ended.kind not in (EXIT, END, COMPUTING):
        return 1
    listener.listen(1)
    _wait(listener, sealed, travel, ended)
    return 0


def _begin(live: Path, sealed: Path) -> Travel:
    try:
        return Travel(live, follows=True)
    except (ReplaydbgError, OSError):
        if not sealed.exists():
            raise
    # The program was done before we had begun.
    return Travel(sealed)


def _wait(listener: socket.socket, sealed: Path, travel: Travel, ended: EndReport) -> None:
    until = time.monotonic() + LONGEST
    poll = select.poll()  # select() knows no descriptors from 1,024 on, and each checkpoint has one
    poll.register(listener, select.POLLIN)
    missing = 0
    while time.monotonic() < until and missing < 10:
        missing = 0 if sealed.exists() else missing + 1
        if not poll.poll(1000):
            continue
        debugger, _ = listener.accept()
        with debugger:
            if _peer(debugger) == os.getuid():
                _hand_over(debugger, travel, ended)
                return


def _peer(other: socket.socket) -> int:
    credentials = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _hand_over(debugger: socket.socket, travel: Travel, ended: EndReport) -> None:
    standing = travel.timeline.standing()
    greeting = encode_value((asdict(ended), travel.keeper, [(each.pid, each.count, each.event) for each in standing]))
    debugger.sendall(struct.pack("<I", len(greeting)) + greeting)
    fds = [*travel.descriptors(), *(each.fileno() for each in standing)]
    for at in range(0, len(fds), _AT_ONCE):
        debugger.recv(1)  # so that one message is never read together with the next
        socket.send_fds(debugger, [b"d"], fds[at : at + _AT_ONCE])
    debugger.recv(1)


def take_over(recording: Path) -> tuple[Travel, EndReport] | None:
    """Return the checkpoints that are held for `recording`, and how its program ended; None: none are."""
    with socket.socket(socket.AF_UNIX) as holder, ExitStack() as received:
        holder.settimeout(30)
        try:
            holder.connect(socket_name(recording))
            if _peer(holder) != os.getuid():
                return None
            size = struct.unpack("<I", _exactly(holder, 4))[0]
            if size > MOST_MESSAGE:
                return None
            read, keeper, standing = decoded(_exactly(holder, size), _HELD, "list of checkpoints")
            ended = end_report(read)
            fds = _descriptors(holder, 5 + len(standing), received)
        except (OSError, ForgedMessage):
            return None
        with open_recording(recording) as opened:
            why = "" if ended_by_itself(opened) else why_it_ends(opened, False)
        received.pop_all()  # they belong to what is made of them now
    files = Files(*(os.fdopen(fd, "r+b") for fd in fds[1:5]))
    keeping = Keeping(socket.socket(fileno=fds[0]), keeper)
    engine = Engine.taken_over(keeping, files, why)
    channels = [EngineSocket(fd) for fd in fds[5:]]
    workers = [
        EngineProcess(channel, keeping, keeping.verified(pid, has_gone=channel.has_gone), count, event)
        for channel, (pid, count, event) in zip(channels, standing, strict=True)
    ]
    return Travel.taken_over(recording, engine, workers), ended


def _exactly(holder: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = holder.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data


def _descriptors(holder: socket.socket, count: int, received: ExitStack) -> list[int]:
    """Return `count` descriptors; `received` closes them."""
    fds: list[int] = []
    while len(fds) < count:
        holder.sendall(b"n")
        data, more, _, _ = socket.recv_fds(holder, 1, _AT_ONCE, socket.MSG_CMSG_CLOEXEC)
        for fd in more:
            received.callback(os.close, fd)
        if not data:
            raise ConnectionResetError
        fds.extend(more)
    holder.sendall(b"t")
    return fds


if __name__ == "__main__":
    sys.exit(main())
