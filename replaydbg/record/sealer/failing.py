"""Which recordings `record --keep-failing-requests` keeps: those of processes that failed, or in which a request did.

The middleware of `replaydbg.web` marks a failed request in a file of the live directory, which stays if the program is
killed. What is not known for sure is kept.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.events import linux
from replaydbg.events.stops import StopReason
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.log.group import PAGE, GroupProcess, has_unborn, is_recorded, is_starting, lock_page, page_rows
from replaydbg.log.live_directory import remove_live
from replaydbg.record.end_facts import describe_end
from replaydbg.record.result import RecordResult
from replaydbg.record.sealing import check_begun, remove_following
from replaydbg.store.directory import LIVE, SEALED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.launch.process import Ended

NOTHING_FAILED = "no request failed, so the recording was removed"
"""Why a process of a group has no recording."""

_FAILED_REQUEST = b'{"do": "failed request", '
"""The beginning of a mark of `replaydbg.web`."""
_STOPPING = (linux.SIGHUP, linux.SIGINT, linux.SIGTERM)
_ORDERLY = frozenset({0, *(-number for number in _STOPPING), *(128 + number for number in _STOPPING)})
"""The statuses of a server that was stopped: servers that handle a signal use a shell's numbers, too."""
_GOES_ON = (StopReason.NOT_STOPPED, StopReason.IMAGE_REPLACED, StopReason.CONTINUED)
"""Reasons to stop a log with which the program ends, too, or goes on in another log."""


def has_failed(live: Path, status: int | None) -> bool:
    """Whether the recording of a process that has ended is kept; `status` None: nobody knows how it ended."""
    if status not in _ORDERLY:
        return True
    return _has_stopped(live) or has_failed_request(live)


def has_failed_request(live: Path) -> bool:
    """Whether a request has failed in a process; if it is the first one, also in those that are sealed."""
    try:
        with (live / "marks").open("rb") as file:
            return any(line.split(b" ", 4)[-1].startswith(_FAILED_REQUEST) for line in file)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def has_failed_request_in(directory: Path) -> bool:
    """Whether a request has failed in a process of a group that is not sealed yet, as long as its first one is not."""
    first = directory / f"1{LIVE}"
    # The first one last: what is sealed meanwhile is noted there before.
    return any(map(has_failed_request, sorted(directory.glob(f"*{LIVE}"), key=first.__eq__)))


def note_failed_request(directory: Path) -> None:
    """Note in the first process of a group that a request has failed in another one, which is about to be sealed."""
    first = directory / f"1{LIVE}"
    with suppress(OSError):
        if first.is_dir():
            with (first / "marks").open("ab", buffering=0) as file:
                file.write(b"0 0 0 0 " + _FAILED_REQUEST + b'"text": "in another process"}\n')


def _has_stopped(live: Path) -> bool:
    """Whether the log ends before the program does: a request may have failed afterwards."""
    try:
        with (live / "log").open("rb") as file:
            header = read_log_header(file.read(LOG_HEADER))
    except OSError:
        return True
    return header is None or header.stopped not in _GOES_ON


def others_have_failed(directory: Path) -> bool:
    """Whether another process of a group has failed, or still runs, or may yet appear; if not, nobody can join it."""
    try:
        with (directory / PAGE).open("rb") as page:
            if not lock_page(page.fileno()) or has_unborn(directory):
                return True
            rows, more = page_rows(directory)
            return more > 0 or any(_may_have_failed(directory, row) for row in rows[1:])
    except (OSError, Corrupt):
        return True


def _may_have_failed(directory: Path, row: GroupProcess) -> bool:
    live = directory / f"{row.number}{LIVE}"
    if (directory / f"{row.number}{SEALED}").exists() or is_starting(row):
        return True
    if not is_recorded(row):
        return False
    if _runs(row.pid):
        return True
    failed = live.is_dir() and has_failed(live, row.status)
    # While this was found out, it may have been sealed, or removed because nothing has failed.
    return (directory / f"{row.number}{SEALED}").exists() or (failed and live.is_dir())


def _runs(pid: int) -> bool:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return not poll.poll(0)  # not even as a zombie
    finally:
        os.close(pidfd)


def dropped(live: Path, ended: Ended) -> RecordResult:
    """Remove the recording of a process in which nothing has failed. Raises CannotRecord if it did not run."""
    try:
        check_begun(live, ended)
        facts = describe_end(live, ended, 0.0)
    finally:
        remove_following(live)
        with suppress(OSError):  # it stays, and `ls` shows it
            remove_live(live)
    return RecordResult(live, ended.status, facts["events"], 0, facts["notes"], None, None, is_dropped=True)


def drop_group(directory: Path, store: Path | None) -> None:
    """Remove a group in which nothing has failed, and the blocks in `store` that nothing else uses."""
    # Imported here: few recordings are dropped.
    from replaydbg.store.clearing import clear
    from replaydbg.store.removing import remove_group

    with suppress(OSError):  # what cannot be removed is found by `ls`
        remove_group(directory)
        if store is not None:
            clear(store)
