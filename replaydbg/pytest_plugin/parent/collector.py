"""Watch a recorded pytest from outside: cut a recording for each test that is kept, and have it examined."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from replaydbg.errors import ReplaydbgError
from replaydbg.launch.process import Ended
from replaydbg.log.edit.cut import LiveRecording, LogPosition
from replaydbg.log.json_data import SnapshotData
from replaydbg.log.logfile import LOG_HEADER, read_log_header
from replaydbg.log.shared import BlockStore
from replaydbg.pytest_plugin.parent.run_sources import RunSources
from replaydbg.pytest_plugin.report import report_text
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.end_of_test import MomentEntry, TestEnd, TestEntry, failure_entry, snapshots_entry
from replaydbg.pytest_plugin.shared.mark_reader import Progress, read_mark
from replaydbg.pytest_plugin.shared.marks_of_tests import AttemptBegun, AttemptEnded, PhaseRaised
from replaydbg.pytest_plugin.shared.results import Failure, Result
from replaydbg.record.end_facts import notes_of
from replaydbg.record.snapshots import packed_snapshots, snapshots_taken
from replaydbg.store.private import DIRECTORY_MODE, make_directory
from replaydbg.store.sessions import write_messages

if TYPE_CHECKING:
    from replaydbg.pytest_plugin.parent.examiner import Examiner

_LOOK_EVERY = 0.03
"""Seconds between two checks for new marks. A check is one stat call."""

_BAD = ("failed", "interrupted", "crashed")
"""Outcomes of tests that are listed with the results of their examination."""

_MOST_MARKS = 100
"""Number of named moments in a recording: the last ones."""

_NOT_EXAMINED = "the process ended during the test, and such recordings are not analysed"

_MOST_SNAPSHOTS = 20
"""Number of a test's snapshots in its recording: the last ones, and that of its failure."""


class Collector(threading.Thread):
    """A thread that runs while the launcher waits for the program. It writes nothing to any stream."""

    def __init__(self, live: Path, directory: Path, *, bisects: bool) -> None:
        super().__init__(name="collector", daemon=True)
        self._live = live
        self._marks_file = str(live / "marks")
        self._directory = directory
        store = BlockStore(directory)
        self._cutter = LiveRecording(live, store, RunSources(live, store))
        self._bisects = bisects
        self._examiner: Examiner | None = None
        """Made at the first failure: most sessions have none."""
        self._began = time.monotonic()
        self._read = 0
        self._marks: list[MomentEntry] = []
        self._open: AttemptBegun | None = None
        self._snapshots_before = 0
        """Number of snapshots when the last test began."""
        self._failures: list[tuple[LogPosition, PhaseRaised]] = []
        self._is_over = threading.Event()
        self._unwritten: dict[str, Result] = {}
        """Results of tests that could not be written, by their directories."""

    def run(self) -> None:
        """Process marks until the program has ended."""
        while not self._is_over.wait(_LOOK_EVERY):
            self._look()

    def finish(self, ended: Ended) -> None:
        """Process the rest after the end of the program. A test that was running then is kept, too."""
        self._is_over.set()
        self.join()
        self._look()
        if self._open is not None and self._open.crash:
            log, world = (_header_of(self._live / name) for name in ("log", "world"))
            place = LogPosition(log[0], world[0], log[1], snapshots_taken(self._live))
            self._keep(place, self._open, outcome="crashed", status=ended.status)
        if self._examiner is not None:
            self._examiner.close()

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
            self._take(line.decode("utf-8", "replace"))

    def _take(self, line: str) -> None:
        *numbers, text = line.split(" ", 4)
        place = LogPosition(*(int(each) for each in numbers))
        mark = read_mark(text)
        content = mark.content
        if mark.name:
            self._marks.append({"name": mark.name, "event": place.events, "is_called": mark.is_called})
        if content is Progress.COLLECTED:
            with suppress(OSError):  # reported with a recording that is kept
                self._cutter.sources.update(place.world)
        elif content is Progress.FINISHED:
            if self._examiner is not None:
                self._examiner.begin_last()
        elif isinstance(content, AttemptBegun):
            self._open, self._failures, self._snapshots_before = content, [], place.snapshots
            # The names of earlier tests are not needed.
            self._marks = [each for each in self._marks if each["name"] == "collected"] + self._marks[-1:]
        elif isinstance(content, PhaseRaised):
            self._failures.append((place, content))
        elif isinstance(content, AttemptEnded):
            begun, self._open = self._open, None
            if begun is not None and content.keep:
                status = 1 if content.outcome in _BAD else 0
                self._keep(place, begun, outcome=content.outcome, status=status, failure=content.failure)

    def _keep(self, place: LogPosition, begun: AttemptBegun, *, outcome: str, status: int, failure: int = -1) -> None:
        """Cut the recording of an attempt, and have it examined; `failure` is the index of what made it fail, or -1."""
        began = time.monotonic()
        folder = os.path.join(self._directory, begun.slug)  # noqa: PTH118 - there may be thousands
        failed = self._failures[failure] if 0 <= failure < len(self._failures) else None
        snapshots = self._snapshots(place, failed[0].snapshots if failed is not None else 0)
        heap = {facts["number"]: data for facts, data in snapshots}
        result = Result(
            nodeid=begun.node,
            attempt=begun.attempt,
            outcome=outcome,
            failure=Failure.at(failed[0].events, failed[1]) if failed is not None else None,
            size=0,
            events=place.events,
            sealing=0.0,
            hash_seed=begun.seed,
            kept=time.time(),
        )
        end = self._end(result, status, [facts for facts, _ in snapshots])
        try:
            make_empty(folder)
            size = self._cutter.cut(place, f"{folder}/{shared_names.RECORDING}", end, heap)
        except OSError as error:
            self._report_unwritten(folder, replace(result, is_examined=True, unwritten=error.strerror or str(error)))
            return
        except Exception as error:  # noqa: BLE001 - that one cannot be made shall not cost all that come later
            self._report_unwritten(
                folder,
                replace(result, is_examined=True, unwritten=f"{type(error).__name__}: {error}".removesuffix(": ")),
            )
            return
        # For other tests the list of all has everything.
        if outcome in _BAD:
            result = replace(result, size=size, sealing=round(time.monotonic() - began, 4))
            if result.outcome == "crashed":
                # Whoever waits for the process must learn of its end now.
                report_text.write_about(Path(folder), replace(result, is_examined=True, verification=_NOT_EXAMINED))
                return
            report_text.write_about(Path(folder), result)
            self._examine(Path(folder), result)

    def _examine(self, folder: Path, result: Result) -> None:
        if self._examiner is None:
            # Imported here, as below.
            from replaydbg.pytest_plugin.parent.examiner import Examiner

            self._examiner = Examiner(bisects=self._bisects)
        self._examiner.add(folder, result)

    def _report_unwritten(self, folder: str, result: Result) -> None:
        """Report why there is no recording; if even that cannot be written, report it in the session's directory."""
        if not report_text.write_about(Path(folder), result):
            self._unwritten[folder] = result
            reasons = {os.path.basename(each): it.unwritten for each, it in self._unwritten.items()}  # noqa: PTH119
            write_messages(self._live.parent, (json.dumps(each) for each in reasons.items()))

    def retry_writes(self) -> None:
        """Retry writes for which there was no room: the session's own files have been deleted."""
        for folder, result in self._unwritten.items():
            with suppress(OSError):
                make_empty(folder)
            report_text.write_about(Path(folder), result)

    def _snapshots(self, place: LogPosition, of_failure: int) -> list[tuple[SnapshotData, bytes]]:
        """Return those that were taken while the test ran; `of_failure` is the number of one, or 0."""
        numbers = list(range(self._snapshots_before + 1, place.snapshots + 1))
        wanted = {*numbers[-_MOST_SNAPSHOTS:], *([of_failure] if of_failure else [])}
        found: list[tuple[SnapshotData, bytes]] = []
        with suppress(ReplaydbgError, OSError):  # a recording works without a snapshot
            found.extend(packed_snapshots(self._live, sorted(wanted)))
        return found

    def _end(self, result: Result, status: int, snapshots: list[SnapshotData]) -> TestEnd:
        """Return the content of the recording's `end.json`; `snapshots` are the facts about those that it holds."""
        test: TestEntry = {
            "nodeid": result.nodeid,
            "outcome": result.outcome,
            "attempt": result.attempt,
            "began": 0,
            "failure": failure_entry(result.failure) if result.failure is not None else None,
        }
        is_crash = result.outcome == "crashed"
        return {
            "status": status,
            "seconds": round(time.monotonic() - self._began, 3),
            "cpu_seconds": 0.0,
            "reason": "the process ended during the test" if is_crash else "the test ended",
            "events": result.events,
            "notes": notes_of(self._live),
            "ok": True,
            "marks": [each for each in self._marks[-_MOST_MARKS:] if each["event"] <= result.events],
            "test": test,
            "snapshots": snapshots_entry(snapshots) if snapshots else None,
        }


def make_empty(folder: str) -> None:
    """Create the directory of a test, or remove an earlier session's files from it. Raises OSError."""
    try:
        os.mkdir(folder, DIRECTORY_MODE)  # noqa: PTH102 - most are new, and there may be thousands
    except FileExistsError:
        for name in (f"{shared_names.RECORDING}.index", shared_names.META, shared_names.SUMMARY):
            Path(folder, name).unlink(missing_ok=True)
    except FileNotFoundError:
        make_directory(Path(folder))


def _header_of(path: Path) -> tuple[int, int]:
    """Return the length of a log, and its number of events."""
    with path.open("rb") as file:
        header = read_log_header(file.read(LOG_HEADER))
    assert header is not None, path
    return header.committed, header.crossings
