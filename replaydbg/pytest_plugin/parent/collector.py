"""Watch a recorded pytest from outside: cut a recording for each test that is kept, and have it examined."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from replaydbg.launch.process import Ended
from replaydbg.log.edit.position import LogPosition
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.pytest_plugin.parent.run_sources import RunSources
from replaydbg.pytest_plugin.shared.mark_reader import Progress, read_mark
from replaydbg.pytest_plugin.shared.marks_of_tests import AttemptBegun, AttemptEnded, PhaseRaised
from replaydbg.record.snapshots import snapshots_taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.pytest_plugin.parent.kept_recordings import Keeper
    from replaydbg.pytest_plugin.shared.end_of_test import MomentEntry

_LOOK_EVERY = 0.03
"""Seconds between two checks for new marks. A check is one stat call."""

_BEGIN, _DROPPED = b'{"do": "begin", ', b'{"do": "end", "keep": false, '
"""Beginnings of two marks as `session_marks` writes them. Of most tests there are only these."""


class Collector(threading.Thread):
    """A thread that runs while the launcher waits for the program. It writes nothing to any stream."""

    def __init__(self, live: Path, directory: Path, work: Path, *, bisects: bool, pages: bool = False) -> None:
        """`live` is the session's live directory, in `work`; `directory` is for the results."""
        super().__init__(name="collector", daemon=True)
        self._live = live
        self._marks_file = str(live / "marks")
        self._directory = directory
        self._work = work
        self._sources = RunSources(live)
        self._bisects, self._pages = bisects, pages
        self._keeper: Keeper | None = None
        """Made for the first recording: most sessions have none."""
        self._began = time.monotonic()
        self._read = 0
        self._marks: list[MomentEntry] = []
        self._begun = b""
        """The mark of a beginning that was not read yet; empty: there is none."""
        self._open: AttemptBegun | None = None
        self._before = LogPosition(0, 0, 0, 0)
        """The position at which the last test began."""
        self._failures: list[tuple[LogPosition, PhaseRaised]] = []
        self._is_over = threading.Event()
        self.is_misguessed = False
        """Whether pytest has ended because our orders were a wrong guess."""

    def run(self) -> None:
        """Process marks until the program has ended."""
        while not self._is_over.wait(_LOOK_EVERY):
            self._look()
            if self._keeper is not None:
                self._keeper.keep_processes()

    def finish(self, ended: Ended) -> None:
        """Process the rest after the end of the program. A test that was running then is kept, too."""
        self._is_over.set()
        self.join()
        self._look()
        if self._begun:
            self._take(self._begun)
        if self._open is not None and self._open.crash:
            place = None
            with suppress(FileNotFoundError):  # the tests have removed their recordings
                log, world = (_header_of(self._live / name) for name in ("log", "world"))
                place = LogPosition(log[0], world[0], log[1], snapshots_taken(self._live))
            if place is not None:
                self._keep(place, self._open, outcome="crashed", status=ended.status)
        if self._keeper is not None:
            self._keeper.keep_processes(is_over=True)
            if self._keeper.examiner is not None:
                self._keeper.examiner.close()

    def retry_writes(self) -> None:
        """Retry writes for which there was no room: the session's own files have been deleted."""
        if self._keeper is not None:
            self._keeper.retry_writes()

    def _look(self) -> None:
        try:
            if os.stat(self._marks_file).st_size == self._read:  # noqa: PTH116 - it is asked for often
                return
            with open(self._marks_file, "rb") as file:  # noqa: PTH123
                file.seek(self._read)
                data = file.read()
        except OSError:
            return  # there are no marks yet
        whole, _, _ = data.rpartition(b"\n")
        if not whole:
            return
        self._read += len(whole) + 1
        for line in whole.split(b"\n"):
            self._take_unless_dropped(line)

    def _take_unless_dropped(self, line: bytes) -> None:
        """Take a mark. Of a test that passes and is not kept, nothing needs to be known: its marks are not read."""
        mark = line.split(b" ", 4)[-1]
        if self._begun:
            begun, self._begun = self._begun, b""
            if mark.startswith(_DROPPED):
                return
            self._take(begun)
        if mark.startswith(_BEGIN) and self._open is None:
            self._begun = line
        else:
            self._take(line)

    def _take(self, line: bytes) -> None:
        *numbers, text = line.decode("utf-8", "replace").split(" ", 4)
        place = LogPosition(*(int(each) for each in numbers))
        mark = read_mark(text)
        content = mark.content
        if mark.name:
            self._marks.append({"name": mark.name, "event": place.events, "is_called": mark.is_called})
        if content is Progress.COLLECTED:
            with suppress(OSError):  # reported with a recording that is kept
                self._sources.update(place.world)
        elif content is Progress.FINISHED:
            if self._keeper is not None and self._keeper.examiner is not None:
                self._keeper.examiner.begin_last()
        elif content is Progress.MISGUESSED:
            self.is_misguessed = True
        elif isinstance(content, AttemptBegun):
            self._open, self._failures, self._before = content, [], place
            # The names of earlier tests are not needed.
            self._marks = [each for each in self._marks if each["name"] == "collected"] + self._marks[-1:]
        elif isinstance(content, PhaseRaised):
            self._failures.append((place, content))
        elif isinstance(content, AttemptEnded):
            begun, self._open = self._open, None
            if begun is not None and content.keep:
                status = 1 if content.outcome in ("failed", "interrupted") else 0
                self._keep(place, begun, outcome=content.outcome, status=status, failure=content.failure)

    def _keep(self, place: LogPosition, begun: AttemptBegun, *, outcome: str, status: int, failure: int = -1) -> None:
        # Imported here, for the first recording.
        from replaydbg.pytest_plugin.parent.kept_recordings import Attempt, Keeper

        if self._keeper is None:
            self._keeper = Keeper(
                self._live,
                self._directory,
                self._work,
                self._sources,
                bisects=self._bisects,
                pages=self._pages,
                began=self._began,
            )
        attempt = Attempt(begun, self._marks, self._before, self._failures)
        self._keeper.keep(place, attempt, outcome=outcome, status=status, failure=failure)


def _header_of(path: Path) -> tuple[int, int]:
    """Return the length of a log, and its number of events."""
    with path.open("rb") as file:
        header = read_log_header(file.read(LOG_HEADER))
    assert header is not None, path
    return header.committed, header.crossings
