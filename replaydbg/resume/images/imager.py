"""Make images of a standby, at intervals of the CPU time that its process has used."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import CannotResume
from replaydbg.log.reader import Recording
from replaydbg.resume.images.criu import CriuFailed, check_criu, save, tracks_memory
from replaydbg.resume.images.image_directory import ImageDirectory
from replaydbg.resume.images.image_facts import ImageFacts, prefix_now, this_place
from replaydbg.resume.images.page import SharedPage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

INTERVAL = 60.0
"""Seconds of CPU time between two images, if none is chosen."""
_LONGEST_CHAIN = 8
"""Images that have only what changed since the one before, until one has everything again."""


class ImageWishes(NamedTuple):
    """The user's wishes for images: where they are kept, and how often one is made."""

    directory: Path
    every: float = INTERVAL
    """Seconds of CPU time of the standby between two of them."""


class StandbyBroken(Exception):
    """A dump was interrupted, and has left the process that was to be saved in no usable state."""


class Imager:
    """Makes images of one standby process while it follows."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        wishes: ImageWishes,
        live: Path,
        logs: Mapping[str, BinaryIO],
        content: int,
        report: Callable[[str], None],
        stack: ExitStack,
    ) -> None:
        """`live` is the directory of the new recording; `logs` and the descriptor `content` are what is followed.

        `report` is called with sentences. Raises CannotResume if no image can be made at all.
        """
        try:
            check_criu()
        except CriuFailed as error:
            raise CannotResume(name, f"no images can be made: {error}") from error
        self._images = ImageDirectory(wishes.directory, name, makes=True)
        stack.enter_context(self._images.held(name))
        self._place = this_place(recording)
        self._every, self._wait = wishes.every, wishes.every
        self._report = report
        self.page = SharedPage(live, stack, name, has_ended=False)
        self._logs = {name: logs[name] for name in ("log", "world")}
        self._files = {name: file.fileno() for name, file in self._logs.items()}
        self._files |= {"page": self.page.file.fileno(), "report": self.page.report.fileno(), "content": content}
        self._last_cpu = 0.0
        self._last_event = -1
        self._chain: tuple[str, ...] = ()

    def save_if_due(self, pid: int) -> None:
        """Make an image of the process `pid` if it has computed for long enough since the last one.

        Raises StandbyBroken if the process cannot go on.
        """
        cpu = _cpu_seconds(pid)
        if cpu - self._last_cpu < self._wait or self.page.events <= max(self._last_event, 0):
            return
        try:
            self._save(pid)
            self._wait = self._every
        except (CriuFailed, OSError) as error:
            reason = error if isinstance(error, CriuFailed) or not error.strerror else error.strerror
            self._report(f"no image could be made: {reason}; the standby goes on without it")
            self._wait *= 2
            if isinstance(error, CriuFailed) and error.is_broken:
                os.kill(pid, signal.SIGKILL)
                raise StandbyBroken from error
        self._last_cpu = _cpu_seconds(pid)

    def _save(self, pid: int) -> None:
        partial = self._images.begin()
        began = time.monotonic()
        chain = self._chain if tracks_memory() and len(self._chain) < _LONGEST_CHAIN else ()
        try:
            try:
                save(pid, partial, f"../{chain[0]}" if chain else "")
                # It is stopped: what it has read is in the logs.
                prefixes = {name: prefix_now(log) for name, log in self._logs.items()}
                event, cpu_ms = self.page.events, round(_cpu_seconds(pid) * 1000)
            finally:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            paths = {name: str(Path(f"/proc/self/fd/{fd}").readlink()) for name, fd in self._files.items()}
            facts = ImageFacts(pid, event, cpu_ms, prefixes, self._place, paths, chain, {})
            self._images.complete(partial, facts)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            self._chain = ()
            raise
        self._chain = (partial.with_suffix("").name, *chain)
        self._last_event = event
        self._report(f"image at event {event:,}, made in {time.monotonic() - began:.1f} s")


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process in seconds; 0.0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
