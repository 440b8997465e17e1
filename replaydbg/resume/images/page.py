"""The page that a standby of which images are made shares with its launcher, in place of a connection.

An image cannot contain a connection to a process outside of it. So the core connects to its launcher only when it is
due to go live, by a path that the page has. StandbyPage in the core (log/log.h) has the same fields.
"""

from __future__ import annotations

import mmap
import os
import select
import shutil
import socket
import struct
import tempfile
from contextlib import ExitStack
from pathlib import Path

from replaydbg.errors import CannotResume

_EVENTS = struct.Struct("<Q")
_PAGE = struct.Struct("<QI108s3976s")
_ENDED_AT = 8
_LONGEST_PATH = 107
"""Bytes of the path of a Unix socket, the NUL left out."""
_LONGEST_DIRECTORY = 3975
"""Bytes of the path of the live directory, the NUL left out."""


class SharedPage:
    """The launcher's side of the page, the socket at which it waits for the core, and the file of the core's report."""

    def __init__(self, live: Path, stack: ExitStack, name: str, *, has_ended: bool) -> None:
        """`live` is the directory in which the new recording is made; all files are closed with `stack`.

        `has_ended`: whether nothing is added to the log any more. Raises CannotResume for a path that is too long, or
        if no file can be made.
        """
        directory = os.fsencode(live.absolute())
        if len(directory) > _LONGEST_DIRECTORY:
            raise CannotResume(name, "the path of the new recording is too long for a standby with images")
        try:
            folder = _folder(stack)
            self.file = stack.enter_context((folder / "page").open("w+b", buffering=0))
            self.report = stack.enter_context((folder / "report").open("w+b", buffering=0))
            self.file.write(_PAGE.pack(0, int(has_ended), os.fsencode(folder / "core"), directory))
        except OSError as error:
            raise CannotResume(name, f"the files of its standby cannot be made: {error.strerror}") from error
        self.listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        self.listener.bind(f"{folder}/core")
        self.listener.listen(1)
        self._map = mmap.mmap(self.file.fileno(), _PAGE.size)
        stack.callback(self._map.close)

    @property
    def events(self) -> int:
        """How many events the process has replayed."""
        (events,) = _EVENTS.unpack_from(self._map)
        return int(events)

    def end_log(self) -> None:
        """Let the core know that nothing is added to the log any more."""
        self._map[_ENDED_AT] = 1

    def accept(self, pid: int) -> socket.socket:
        """Wait for the connection of the core of the process `pid`. Raises ConnectionError if that has ended."""
        pidfd = os.pidfd_open(pid)
        try:
            ready = select.poll()
            ready.register(self.listener, select.POLLIN)
            ready.register(pidfd, select.POLLIN)
            if all(fd != self.listener.fileno() for fd, _ in ready.poll()):
                raise ConnectionError("the replay has ended")
            return self.listener.accept()[0]
        finally:
            os.close(pidfd)


def _folder(stack: ExitStack) -> Path:
    """Return a directory that only this user can enter, with a path that is short enough for a socket."""
    folder = tempfile.mkdtemp(prefix="replaydbg-")
    if len(os.fsencode(folder)) > _LONGEST_PATH - len("/core"):
        Path(folder).rmdir()
        folder = tempfile.mkdtemp(prefix="replaydbg-", dir="/tmp")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
