"""Keep the recording of a future: the log with its past, and what the past's recording has besides."""

from __future__ import annotations

import os
import time
from pathlib import Path
from shutil import rmtree

import replaydbg
from replaydbg.errors import CannotRecord
from replaydbg.events.records import Control
from replaydbg.futures.future import Future, RunningFuture
from replaydbg.futures.schedules.given import ScheduleKind
from replaydbg.launch.process import Ended
from replaydbg.log.reader import Recording
from replaydbg.record.place import make_live_directory, shared_store, write_start
from replaydbg.record.result import RecordResult
from replaydbg.record.sealing import STAYS, seal_recording
from replaydbg.resume.preparation import first_orders, written_to
from replaydbg.store.directory import sealed_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from replaydbg.log.json_data import HeaderData

_OF_GROUPS = ("group", "process", "outputs", "branch")
"""Fields of the header that only processes of a group have."""


OF_A_TEST = "a future of a test stops where the test ends, so it is no whole run"
"""Why none of them is kept."""


class FutureKeeper:
    """Keeps recordings of futures, until one cannot be written: what came of all is worth more than they are."""

    def __init__(self, recording: Recording, name: str, event: int, output: Path | None, store: Path) -> None:
        """`recording`, called `name`, is that of their past, which ends with `event`.

        `output`: the directory in which they are kept; None: they are kept in `store`.
        """
        self._recording, self._name, self._event = recording, name, event
        self._output, self._store = output, store
        self.unkept = ""
        """Why one was not kept, and so no later one was; empty: all that were wanted were."""

    def keep(self, running: RunningFuture, future: Future, file: str) -> Path | None:
        """Write the recording of a future that has ended to `file` of the directory; None: see `unkept`."""
        if future.is_of_test:
            self.unkept = OF_A_TEST
        if self.unkept:
            return None
        output = self._output / file if self._output is not None else None
        try:
            return keep(self._recording, self._name, self._event, running, future, output, self._store).path
        except CannotRecord as error:
            self.unkept = error.reason
            return None


def keep(
    recording: Recording,
    name: str,
    event: int,
    running: RunningFuture,
    future: Future,
    output: Path | None,
    store: Path,
) -> RecordResult:
    """Write the recording of a future that has ended, and return it.

    `recording`, called `name`, is that of its past, which ends with `event`; `output` is the new one's path (default: a
    name in `store`, whose recordings share blocks). Raises CannotRecord.
    """
    live = make_live_directory(output, store)
    try:
        return _sealed(live, recording, name, event, running, future, shared_store(output, store))
    except BaseException:
        rmtree(live, ignore_errors=True)  # the past is in its recording, and nobody can go on with the rest
        raise


def _sealed(
    live: Path,
    recording: Recording,
    name: str,
    event: int,
    running: RunningFuture,
    future: Future,
    shared: Path | None,
) -> RecordResult:
    with written_to(live):
        recording.unpack(live)
        copy_file(running.log, live / "log")
        if os.fstat(running.world.fileno()).st_size:
            copy_file(running.world, live / "world")
        write_notes(live, recording, event, running, future)
        write_start(live, future_header(recording, name, live, event, running), first_orders(recording.header))
        ended = Ended(future.status, cpu_before(recording) + future.cpu_seconds)
        result = seal_recording(live, ended, future.cpu_seconds, store=shared)
    if result.problem is not None:
        raise CannotRecord(str(live), result.problem.partition(STAYS)[0])  # it is removed
    return result


def copy_file(file: BinaryIO, path: Path) -> None:
    """Write the content of a file in memory to `path`. Raises OSError."""
    size = os.fstat(file.fileno()).st_size
    with path.open("wb") as target:
        done = 0
        while done < size:
            done += os.sendfile(target.fileno(), file.fileno(), done, size - done)


def write_notes(live: Path, recording: Recording, event: int, running: RunningFuture, future: Future) -> None:
    """Write what the core of a recorded program would have written beside its log: a future has no directory."""
    end = recording.end
    notes = [(note.kind, note.text) for note in (end.notes if end is not None else ())]
    notes += [
        entry.note
        for entry in running.own_entries(event, recording.header.gates)
        if isinstance(entry, Control) and entry.note is not None
    ]
    if future.exception is not None:
        notes.append(("exception", future.exception.type))
    lines = ["{}\t{}\n".format(kind, text.replace("\n", "\v")) for kind, text in dict.fromkeys(notes)]
    (live / "notes").write_text("".join(lines), encoding="utf-8", errors="replace")


def cpu_before(recording: Recording) -> float:
    """Return the CPU time in seconds that a recorded process had used."""
    return recording.log_header.cpu_ms / 1000 if recording.log_header is not None else 0.0


def future_header(recording: Recording, name: str, live: Path, event: int, running: RunningFuture) -> HeaderData:
    """Return the header of the recording of a future: that of its past, and where it came from."""
    facts = {key: value for key, value in recording.header.raw.items() if key not in _OF_GROUPS}
    facts |= {
        "tool": replaydbg.__version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "name": sealed_path(live).stem,
        "future": {"from": name, "event": event, "seed": running.seed, **_schedule(running)},
    }
    return facts  # type: ignore[return-value]


def _schedule(running: RunningFuture) -> dict[str, object]:
    """Return the schedule that it was given, if it was."""
    given = running.schedule
    if given is None or given.kind is ScheduleKind.RANDOM:
        return {}
    return {
        "schedule": given.kind.name.lower(),
        "deviations": [list(each) for each in given.deviations],
        "changes": list(given.changes),
    }
