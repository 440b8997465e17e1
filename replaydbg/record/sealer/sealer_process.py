"""The process that seals the recordings of a group: how the launcher starts, ends and hears it (see `group_sealer`)."""

from __future__ import annotations

import fcntl
import os
import select
import signal
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import CannotRecord
from replaydbg.launch.interruption import ENDING
from replaydbg.log.group import WAKE, Group, GroupProcess, write_group
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.record.place import reason_of

_CONTROL, _ANSWER = 3, 4
"""The descriptors by which the process that seals hears from the launcher, and answers it."""


class SealerProcess:
    """The process that seals the recordings of children, each when it has ended; it outlives us if children do."""

    def __init__(
        self, directory: Path, identity: str, argv: list[str], blocks: BlockPlaces, *, only_failing: bool = False
    ) -> None:
        """Start it; `only_failing`: it removes recordings in which nothing failed. Raises CannotRecord."""
        opened: list[int] = []
        first = GroupProcess(1, 0, 0, 0, "program", argv, False, None, "", "1.rdbg", "")
        try:
            write_group(directory, Group(identity, [first], 0, False))
            # Not a socket pair: that takes 2 ms to import, and each program pays it.
            control, self._control = os.pipe()
            opened += [control, self._control]
            self._answer, answer = os.pipe()
            opened += [self._answer, answer]
            self._pid = os.fork()
        except OSError as error:
            for each in opened:
                os.close(each)
            raise CannotRecord(str(directory), reason_of(error)) from error
        if self._pid == 0:
            _be_the_sealer(control, answer, directory, blocks, only_failing=only_failing)
        os.close(control)
        os.close(answer)

    def dismiss(self) -> None:
        """End it: nothing is left to be sealed."""
        self._close()
        os.kill(self._pid, signal.SIGKILL)  # our child, and nobody else has waited for it
        with suppress(ChildProcessError):  # of a launcher that has gone on in the background
            os.waitpid(self._pid, 0)

    def finish(self, status: int | None, *, passes: bool = False, tags_failing: bool = False) -> bool:
        """Return when all recordings of processes that have ended are sealed; `status` is the first program's.

        None: it did not start. `passes` and `tags_failing`: see `RecordedGroup`. Returns False if the sealer was
        killed: live directories stay.
        """
        answer = b""
        with suppress(OSError):
            words = (b"passes" if passes else b"", b"tags" if tags_failing else b"")
            os.write(self._control, b"none\n" if status is None else b" ".join((b"%d" % status, *filter(None, words))))
            answer = os.read(self._answer, 1)
        self._close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, os.WNOHANG)
        return bool(answer)

    def _close(self) -> None:
        os.close(self._control)
        os.close(self._answer)


def _be_the_sealer(control: int, answer: int, directory: Path, blocks: BlockPlaces, *, only_failing: bool) -> None:
    """Become the process that seals: with nothing of ours open that somebody could wait for."""
    try:
        os.setsid()
        os.nice(5)  # the program comes first
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        # Where standard streams are closed, each may have the number that is meant for the other.
        moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _ANSWER + 1) for each in (control, answer)]
        for each, target in zip(moved, (_CONTROL, _ANSWER), strict=True):
            os.dup2(each, target, inheritable=False)
        null = os.open(os.devnull, os.O_RDWR)
        for target in (0, 1, 2):
            os.dup2(null, target)
        os.closerange(_ANSWER + 1, os.sysconf("SC_OPEN_MAX"))
        os.chdir("/")  # somebody may want to remove the directory, or to unmount it
        # For writing, too: so it has no end when the last writer is gone.
        wake = os.open(directory / WAKE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        select.select([wake, _CONTROL], [], [])  # most programs start no other
        from replaydbg.record.sealer.group_sealer import seal_group

        seal_group(directory, (_CONTROL, _ANSWER), wake, blocks, only_failing=only_failing)
    finally:
        os._exit(0)
