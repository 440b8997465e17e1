"""Make the recordings of tests that are kept, and have them examined. Loaded for the first one."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import NamedTuple, replace
from replaydbg.log.edit.cut_log import LiveRecording
from replaydbg.log.group import GROUP, group_directory
from replaydbg.log.sealed.shared import BlockStore
from replaydbg.pytest_plugin.report import report_text
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.end_of_test import MomentEntry, TestEnd, TestEntry, failure_entry, snapshots_entry
from replaydbg.pytest_plugin.shared.results import Failure, Result
from replaydbg.record.end_facts import notes_of
from replaydbg.record.hiding import growing_secrets
from replaydbg.store.private import DIRECTORY_MODE, make_directory
from replaydbg.store.sessions import write_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.position import LogPosition
    from replaydbg.pytest_plugin.parent.examiner import Examiner
    from replaydbg.pytest_plugin.parent.kept_groups import KeptGroups
    from replaydbg.pytest_plugin.parent.run_sources import RunSources
    from replaydbg.pytest_plugin.parent.session_snapshots import KeptSnapshots, SessionSnapshots
    from replaydbg.pytest_plugin.shared.marks_of_tests import AttemptBegun, PhaseRaised

BAD = ("failed", "interrupted", "crashed")
"""Outcomes of tests that are listed with the results of their examination."""

_MOST_MARKS = 100
"""Number of named moments in a recording: the last ones."""

_NOT_EXAMINED = "the process ended during the test, and such recordings are not analysed"

_MOST_SNAPSHOTS = 20
"""Number of a test's snapshots in its recording: the last ones, and that of its failure."""


class Attempt(NamedTuple):
    """An attempt of a test that has ended, as far as the marks tell."""

    begun: AttemptBegun
    """Its beginning."""
    marks: list[MomentEntry]
    """The named moments up to its end."""
    before: LogPosition
    """The position at which it began."""
    failures: list[tuple[LogPosition, PhaseRaised]]
    """The exceptions that its phases raised."""


class Keeper:
    """Makes the recordings of one session."""

    def __init__(
        self, live: Path, directory: Path, work: Path, sources: RunSources, *, bisects: bool, pages: bool, began: float
    ) -> None:
        """`began`: the monotonic time at which the program started; `work` is the directory of the session."""
        self._live = live
        self._directory = directory
        self._work = work
        self._store = BlockStore(directory)
        sources.store = self._store
        self._secrets = growing_secrets(live)
        sources.mask(self._secrets)
        self._cutter = LiveRecording(live, self._store, sources, self._secrets)
        self._heap: SessionSnapshots | None = None
        """Made for the first snapshot."""
        self._bisects, self._pages = bisects, pages
        self._began = began
        self._since = time.time() - (time.monotonic() - began)
        """The same in seconds since the epoch."""
        self._groups = _groups_of(live)
        """None: children are not recorded."""
        self.examiner: Examiner | None = None
        """Made at the first failure."""
        self._unwritten: dict[str, Result] = {}
        """Results of tests that could not be written, by their directories."""

    def keep(self, place: LogPosition, attempt: Attempt, *, outcome: str, status: int, failure: int = -1) -> None:
        """Cut the recording of an attempt, and have it examined; `failure` is the index of what made it fail, or -1."""
        began = time.monotonic()
        begun, failures = attempt.begun, attempt.failures
        folder = os.path.join(self._directory, begun.slug)  # noqa: PTH118 - there may be thousands
        failed = failures[failure] if 0 <= failure < len(failures) else None
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
        try:
            make_empty(folder, self._since)
            self._cutter.learn(place)  # before anything is packed
            snapshots = self._snapshots(
                place, attempt.before.snapshots, failed[0].snapshots if failed is not None else 0
            )
            end = self._end(result, status, attempt.marks, snapshots)
            size, processes = self._cut(place, folder, end, snapshots, attempt.before.events)
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
        if outcome in BAD:
            result = replace(result, size=size, processes=processes, sealing=round(time.monotonic() - began, 4))
            if result.outcome == "crashed":
                # Whoever waits for the process must learn of its end now.
                report_text.write_about(Path(folder), replace(result, is_examined=True, verification=_NOT_EXAMINED))
                return
            report_text.write_about(Path(folder), result)
            self._examine(Path(folder), result)

    def _cut(
        self, place: LogPosition, folder: str, end: TestEnd, snapshots: KeptSnapshots | None, began: int
    ) -> tuple[int, int]:
        """Write the recording, and begin the group of the processes that were started after `began` events.

        Returns its size, and the number of these processes that are recorded. Raises OSError.
        """
        children = self._groups.of_test(began, place.events) if self._groups is not None else []
        size = self._cutter.cut(
            place,
            f"{folder}/{shared_names.RECORDING}",
            end,
            snapshots.sections if snapshots is not None else {},
            transfers=bool(children),
        )
        return size, self._groups.keep(folder, end["status"], children) if self._groups is not None else 0

    def keep_processes(self, *, is_over: bool = False) -> None:
        """Complete the groups of kept tests whose processes have ended; `is_over`: all of them."""
        if self._groups is not None:
            self._groups.look(is_over=is_over)

    def _examine(self, folder: Path, result: Result) -> None:
        if self.examiner is None:
            # Imported here, as below.
            from replaydbg.pytest_plugin.parent.examiner import Examiner

            self.examiner = Examiner(bisects=self._bisects, pages=self._pages)
        self.examiner.add(folder, result)

    def _report_unwritten(self, folder: str, result: Result) -> None:
        """Report why there is no recording; if even that cannot be written, report it in the session's directory."""
        if not report_text.write_about(Path(folder), result):
            self._unwritten[folder] = result
            reasons = {os.path.basename(each): it.unwritten for each, it in self._unwritten.items()}  # noqa: PTH119
            write_messages(self._work, (json.dumps(each) for each in reasons.items()))

    def retry_writes(self) -> None:
        """Retry writes for which there was no room: the session's own files have been deleted."""
        for folder, result in self._unwritten.items():
            with suppress(OSError):
                make_empty(folder, self._since)
            report_text.write_about(Path(folder), result)

    def _snapshots(self, place: LogPosition, before: int, of_failure: int) -> KeptSnapshots | None:
        """Return those that were taken after the first `before`; `of_failure` is the number of one, or 0."""
        numbers = list(range(before + 1, place.snapshots + 1))
        wanted = {*numbers[-_MOST_SNAPSHOTS:], *([of_failure] if of_failure else [])}
        if not wanted:
            return None
        if self._heap is None:
            # Imported here: tests that pass have none.
            from replaydbg.pytest_plugin.parent.session_snapshots import SessionSnapshots

            self._heap = SessionSnapshots(self._live, self._store, self._secrets)
        return self._heap.of_test(sorted(wanted))

    def _end(self, result: Result, status: int, marks: list[MomentEntry], snapshots: KeptSnapshots | None) -> TestEnd:
        """Return the content of the recording's `end.json`; `snapshots` are those in it."""
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
            "marks": [each for each in marks[-_MOST_MARKS:] if each["event"] <= result.events],
            "test": test,
            "snapshots": snapshots_entry(snapshots.listed, snapshots.bases) if snapshots and snapshots.listed else None,
        }


def _groups_of(live: Path) -> KeptGroups | None:
    directory = group_directory(live)
    if directory is None:
        return None
    # Imported here: few sessions record the children of tests.
    from replaydbg.pytest_plugin.parent.kept_groups import KeptGroups

    return KeptGroups(directory)


def _remove_group(folder: str) -> None:
    if os.path.lexists(f"{folder}/{shared_names.PROCESSES}{GROUP}"):
        # Imported here, as above.
        from replaydbg.pytest_plugin.parent.kept_groups import remove_earlier

        remove_earlier(folder)


def make_empty(folder: str, since: float) -> None:
    """Create the directory of a test, or remove an earlier session's files from it. Raises OSError.

    `since`: when this session began, in seconds since the epoch. A page that is newer stays: it says that pytest ended
    before the recording was there.
    """
    try:
        os.mkdir(folder, DIRECTORY_MODE)  # noqa: PTH102 - most are new, and there may be thousands
    except FileExistsError:
        for name in (f"{shared_names.RECORDING}.index", shared_names.META, shared_names.SUMMARY):
            Path(folder, name).unlink(missing_ok=True)
        page = Path(folder, shared_names.PAGE)
        if page.exists() and page.stat().st_mtime < since:
            page.unlink()
        _remove_group(folder)
    except FileNotFoundError:
        make_directory(Path(folder))
