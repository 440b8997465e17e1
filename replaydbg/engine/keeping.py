"""The debugger's connection to the keeper, which knows the processes of the session and alone ends them."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import NotRequired, TypedDict

from replaydbg.errors import ForgedMessage
from replaydbg.launch.proc import has_proc
from replaydbg.store.process_check import exists

ORDER = struct.Struct("<q")
"""An order to the keeper: the number of the process that it is to kill; negative: whether it is the keeper's child."""

YES, NO = b"y", b"n"
"""The keeper's answer to that question."""

ANSWER_SECONDS = 30.0
"""How long the keeper may take for it."""

ANY_KIND = 0x40000000
"""__WALL: children that send another signal at their end, too."""


class KeeperOrders(TypedDict):
    """The argument of the keeper, written with repr(); names that end in `fd` are descriptors that it inherits."""

    version: int
    path: str
    """The recording."""
    current_source: bool
    follows: bool
    """Whether it is a live directory whose program runs."""
    last_line: int
    keeper_fd: int
    """The socket to the debugger."""
    fd: int
    """The first process's socket."""
    clock_fd: int
    clock_steps_fd: int
    output_fd: int
    raises_fd: int
    course_fd: NotRequired[int]


def descriptors_of(orders: KeeperOrders) -> dict[str, int]:
    """Return the descriptors among the orders, by name."""
    return {name: value for name, value in orders.items() if name.endswith("fd") and isinstance(value, int)}


class Keeping:
    """The keeper of a session.

    A process of the session names others by their process IDs, which may be forged: so one is accepted only if the
    kernel confirms that the keeper started that process, and the keeper asks the kernel again before it sends a signal.
    As their parent it alone can do so without a race: an ID is not reused before it has waited for the process.
    """

    def __init__(self, debugger: socket.socket, pid: int) -> None:
        """`debugger` leads to the keeper, the process `pid`."""
        self._socket = debugger
        self._asking = threading.Lock()
        self.pid = pid
        self.broken = ""
        """Why nothing of the session is believed any more; empty: it is."""

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self._socket.fileno()

    def verified(self, pid: int, *, has_gone: bool = False) -> int:
        """Return `pid` if that is a process of the session, 0 if there is no such process, or no longer.

        `has_gone`: it has ended meanwhile, and the ID may have been reused. Raises ForgedMessage if it is a process
        that the keeper did not start.
        """
        is_ours = _is_child(pid, self.pid) if has_proc() else self._is_child(pid)
        if is_ours:
            return pid
        if is_ours is False and not has_gone:
            raise ForgedMessage(f"it named process {pid}, which is not of this session")
        return 0

    def _is_child(self, pid: int) -> bool | None:
        """Ask the keeper what `_is_child` returns, where /proc does not show it."""
        if pid <= 0 or not exists(pid):
            return None
        try:
            with self._asking:
                self._socket.sendall(ORDER.pack(-pid))
                answered = select.select([self._socket], [], [], ANSWER_SECONDS)[0]
                answer = self._socket.recv(1) if answered else b""
        except (OSError, ValueError, struct.error):
            return None  # the session has ended, and all its processes with it
        return {YES: True, NO: False}.get(answer)

    def kill(self, pid: int) -> None:
        """Let the keeper kill a process of the session; it does nothing if it is none, or has ended."""
        with suppress(OSError):  # the session has ended, and all its processes with it
            self._socket.send(ORDER.pack(pid), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def forged(self, reason: str) -> ForgedMessage:
        """End the session, whose processes cannot be believed any more; return the error to raise."""
        self.broken = self.broken or reason
        self.close()
        return ForgedMessage(reason)

    def close(self) -> None:
        """Let the keeper end, and all processes of the session with it; again is harmless."""
        self._socket.close()


def is_own_child(pid: int) -> bool:
    """Whether `pid` is a process that this one has started and that has not ended: for the keeper."""
    try:
        return pid > 0 and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT | ANY_KIND) is None
    except ChildProcessError:
        return False


def was_own_child(pid: int) -> bool:
    """Whether this process has started `pid`, and has not waited for it: for the keeper."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT | ANY_KIND)
    except (ChildProcessError, OverflowError):
        return False
    return True


def _is_child(pid: int, parent: int) -> bool | None:
    """Whether `pid` is a child of `parent`; None: there is no such process, or /proc does not show it."""
    if pid <= 0:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        found = int(text.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return found == parent if found else None
