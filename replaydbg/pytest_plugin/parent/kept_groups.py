"""Keep the recordings of processes that a kept test started, as a group beside the test's recording.

The session's processes are one group, in the session's own directory, and are sealed there when they end. A kept test
gets those that it started, and those that were started before and had not ended when it began.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import ReplaydbgError
from replaydbg.log.group import GROUP, Group, GroupProcess, read_group, write_group
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.store.directory import member_path
from replaydbg.store.private import DIRECTORY_MODE
from replaydbg.store.removing import remove_group


class _Waiting(NamedTuple):
    """The group of a kept test that has processes which have not ended."""

    directory: Path
    status: int
    """The exit code in the test's recording."""
    numbers: frozenset[int]
    """Those of its processes, in the session's group."""


class KeptGroups:
    """The groups of the tests that are kept in one session."""

    def __init__(self, session: Path) -> None:
        """`session` is the directory of the session's group."""
        self._session = session
        self._waiting: list[_Waiting] = []

    def of_test(self, began: int, ended: int) -> list[GroupProcess]:
        """Return the processes of a test that began and ended after so many events; empty if none is recorded."""
        try:
            rows = read_group(self._session).processes
        except (OSError, ReplaydbgError):
            return []
        chosen: dict[int, GroupProcess] = {}
        for row in rows:
            is_own = row.parent == 1 and row.event <= ended and (row.event > began or self._served(row, began))
            if is_own or row.parent in chosen:
                chosen[row.number] = row
        return list(chosen.values()) if any(each.recording for each in chosen.values()) else []

    def _served(self, row: GroupProcess, began: int) -> bool:
        """Whether a process that was started earlier had not ended when a test began, after so many events."""
        if row.recording is None:
            return False
        # Of one for which nobody has waited it is not known when it ended: only whether.
        is_sealed = (self._session / row.recording).exists()
        return row.waited > began or not (row.waited or is_sealed)

    def keep(self, folder: str, status: int, processes: list[GroupProcess]) -> int:
        """Make the group of a test beside its recording, which is in it as process 1.

        Returns the number of recordings besides that; 0: there are none, or the group could not be made.
        """
        if not processes:
            return 0
        directory = group_of(folder)
        try:
            directory.mkdir(mode=DIRECTORY_MODE)
            # The test's recording is replaced when tests that it does not need are left out: its events get other
            # numbers.
            _link(Path(folder, shared_names.RECORDING), directory / "1.rdbg")
            self._write(directory, status, processes, is_complete=False)
        except (OSError, ReplaydbgError):  # the recording of the test itself is there
            return 0
        self._waiting.append(_Waiting(directory, status, frozenset(each.number for each in processes)))
        return sum(each.recording is not None for each in processes)

    def look(self, *, is_over: bool) -> None:
        """Complete groups whose processes have ended; `is_over`: all, also with processes that still run."""
        for waiting in list(self._waiting):
            with suppress(OSError, ReplaydbgError):  # the disk is full, or somebody has removed it
                rows = [each for each in read_group(self._session).processes if each.number in waiting.numbers]
                left = [each for each in rows if each.recording and not (self._session / each.recording).exists()]
                if left and not is_over:
                    continue
                members = [self._added(each, waiting.directory) for each in rows]
                self._write(waiting.directory, waiting.status, members, is_complete=True)
            self._waiting.remove(waiting)

    def _write(self, directory: Path, status: int, members: list[GroupProcess], *, is_complete: bool) -> None:
        whole = read_group(self._session)
        first = whole.processes[0]._replace(
            has_ended=True, status=status, status_from="launcher", recording="1.rdbg", why_not=""
        )
        write_group(directory, Group(whole.identity, [first, *members], 0, is_complete))

    def _added(self, row: GroupProcess, directory: Path) -> GroupProcess:
        """Add the recording of a process to a test's group; return the row, without it if that fails."""
        if row.recording is None:
            return row
        path = member_path(self._session, row.number)
        try:
            if path.name == row.recording:
                _link(path, directory / row.recording)
            else:
                _write_so_far(path, directory / row.recording)
        except (OSError, ReplaydbgError) as error:
            return row._replace(recording=None, why_not=f"its recording could not be kept: {error}")
        return row


def group_of(folder: str) -> Path:
    """Return where the group of a test is, in the directory of its results."""
    return Path(folder, f"{shared_names.PROCESSES}{GROUP}")


def remove_earlier(folder: str) -> None:
    """Remove the group that an earlier session left. Raises OSError."""
    directory = group_of(folder)
    if directory.is_dir() and not directory.is_symlink():
        remove_group(directory)


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:  # the file system has no links
        shutil.copyfile(path, target)
        target.chmod(0o600)


def _write_so_far(live: Path, target: Path) -> None:
    """Write what there is of the recording of a process that still runs."""
    # Imported here: few tests leave processes behind.
    from replaydbg.log.edit.standalone import write_standalone
    from replaydbg.log.reader import open_recording
    from replaydbg.record.hiding import hiding_of
    from replaydbg.record.sealer.group_secrets import secrets_of_others

    with open_recording(live) as recording:
        write_standalone(recording, target, hiding_of(live, secrets_of_others(live)))
