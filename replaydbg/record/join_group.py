"""Record a program that joins a group of processes which is being recorded (`record --join`).

The program starts as one that a process of the group starts (`record/joiner.py`), but as a child of ours. We hold the
group's page locked until it has ended, so that the group is not completed meanwhile; the process that seals the
recordings of the group seals its recording, too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.errors import CannotJoin, Corrupt, NotARecording
from replaydbg.launch import interpreter
from replaydbg.launch.interruption import postponed
from replaydbg.launch.process import run_process
from replaydbg.launch.program_python import split_command
from replaydbg.log.allowance import load_json
from replaydbg.log.coding.codec import decode_value
from replaydbg.log.coding.decode import Malformed
from replaydbg.log.group import (
    GROUP,
    MOST_PROCESSES,
    ORDERS,
    PAGE,
    WAKE,
    GroupProcess,
    may_grow,
    page_rows,
    read_group,
    wake_sealer,
    write_status,
)
from replaydbg.log.reader import open_recording
from replaydbg.native import check_interpreter, core_file
from replaydbg.record.group import boot_id, library_for
from replaydbg.record.place import handled_signals
from replaydbg.record.result import RecordResult
from replaydbg.record.start import wanted_program
from replaydbg.store.directory import LIVE, SEALED, member_path

_STEP = 0.02
"""Seconds between two looks whether the recording is sealed."""

HAS_ENDED = "its recording has ended"
NOT_RECORDED = "the program was not recorded"


def record_joined(argv: list[str], directory: Path) -> RecordResult:
    """Record the program that `argv` names, see `split_command`, as a process of the group in `directory`.

    Raises CannotJoin if that is not possible, and UsageError, UnsupportedPython and NotBuilt as `record` does.
    """
    check_interpreter()
    wanted = wanted_program(split_command(argv, follows_activated=True))
    core_file(interpreter.soabi())
    library = library_for("--join")
    directory = directory.absolute()
    command = [wanted.python.executable, *wanted.options.given, *wanted.target.options]
    with _open_group(directory):
        environment = _with_invitation(wanted.environment, directory, library)
        started = _Started(directory)
        ended = run_process(
            command,
            environment,
            ignored=[int(number) for number in interpreter.ignored_signals()],
            meanwhile=started.has_pid,
            handled=started.handled_signals,
        )
        with postponed():
            process = started.row()
            if process is not None:
                with suppress(OSError):  # somebody has removed the group
                    write_status(directory, process.number, ended.status)
    with postponed():  # a signal to a whole group is meant for the program
        wake_sealer(directory)
        return _sealed(directory, process, ended.status)


def why_no_group(path: Path) -> str:
    """Return why the recording at `path`, which is in no group, cannot be joined."""
    try:
        orders = decode_value((path / "boot").read_bytes())
    except (OSError, Malformed):  # it is a file, or is just being sealed, or is damaged
        return HAS_ENDED
    # A group that has become one recording is being sealed.
    has_left = isinstance(orders, dict) and "group" in orders
    return HAS_ENDED if has_left else "it is recorded with --children=none"


def _with_invitation(environment: dict[str, str], directory: Path, library: str) -> dict[str, str]:
    """Return the environment by which a program finds the group; it has no parent there (log/page.h)."""
    given = environment.get("LD_PRELOAD")
    return {
        **environment,
        "LD_PRELOAD": f"{given}:{library}" if given else library,
        "REPLAYDBG_GROUP": f"00000:00000:0:{directory}",
    }


@contextmanager
def _open_group(directory: Path) -> Iterator[None]:
    """Hold the group open in the block. Raises CannotJoin if it is not being recorded."""
    name = directory.name.removesuffix(GROUP)
    try:
        page = os.open(directory / PAGE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotJoin(name, HAS_ENDED if error.errno == errno.ENOENT else os.strerror(error.errno or 0)) from error
    try:
        fcntl.flock(page, fcntl.LOCK_SH)
        if not os.fstat(page).st_nlink:
            raise CannotJoin(name, HAS_ENDED)  # just now
        _check_open(name, directory)
        yield
    finally:
        os.close(page)


def _check_open(name: str, directory: Path) -> None:
    try:
        group = read_group(directory)
        orders = load_json((directory / ORDERS).read_bytes())
        is_full = not may_grow(str(directory))
    except (OSError, ValueError, Corrupt, NotARecording) as error:
        raise CannotJoin(name, f"its files cannot be read ({error})") from error
    if group.is_complete:
        raise CannotJoin(name, HAS_ENDED)
    if not isinstance(orders, dict) or not isinstance(orders.get("joins"), bool):
        raise CannotJoin(name, "it was recorded by another version of replaydbg")
    if orders.get("boot") != boot_id():
        raise CannotJoin(name, "it was recorded on another machine, or before this one was restarted")
    if not wake_sealer(directory):
        raise CannotJoin(name, "the process that seals its recordings has ended")
    if len(group.processes) >= MOST_PROCESSES:
        raise CannotJoin(name, f"it has {MOST_PROCESSES:,} processes, and takes no more")
    if is_full:
        raise CannotJoin(name, "its recordings have reached --max-size")


class _Started:
    """The program's process, which takes a row of the group by itself."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pid = self._number = 0

    def has_pid(self, pid: int) -> None:
        """Take note of its process id."""
        self._pid = pid

    def row(self) -> GroupProcess | None:
        """Return its row; None: it has none."""
        try:
            rows = page_rows(self._directory)[0]
        except (OSError, Corrupt):
            return None  # somebody has removed the group
        return next((row for row in reversed(rows) if row.pid == self._pid and row.how == "joined"), None)

    def handled_signals(self) -> int:
        """Return how many signals it has handled so far."""
        if not self._number:
            row = self.row()
            self._number = row.number if row is not None else 0
        return handled_signals(self._directory / f"{self._number}{LIVE}")


def _sealed(directory: Path, process: GroupProcess | None, status: int) -> RecordResult:
    """Wait until its recording is sealed, and return it."""
    if process is None:
        return RecordResult(directory, status, 0, 0, [], None, f"{NOT_RECORDED}: it could not join the group")
    if process.recording is None:
        return RecordResult(directory, status, 0, 0, [], None, f"{NOT_RECORDED}: {process.why_not}")
    target = directory / f"{process.number}{SEALED}"
    while not target.exists():
        problem = _why_not_sealed(directory, process.number)
        if problem and not target.exists():
            return _result(member_path(directory, process.number), status, problem)
        time.sleep(_STEP)
    return _result(target, status, None)


def _why_not_sealed(directory: Path, number: int) -> str:
    """Return why the recording is not going to be sealed; empty: it is."""
    if not os.path.lexists(directory / WAKE) or not wake_sealer(directory):
        return "it is not sealed, because the process that seals has ended, and stays a directory"
    try:
        rows = read_group(directory).processes
    except (Corrupt, NotARecording, OSError):
        return "it was removed"
    return next((each.why_not for each in rows if each.number == number and each.has_ended), "")


def _result(path: Path, status: int, problem: str | None) -> RecordResult:
    with open_recording(path) as recording:
        end, log = recording.end, recording.log_header
        notes = list(end.raw["notes"]) if end is not None else []
        events = end.events if end is not None else log.crossings if log is not None else 0
        reason = end.reason if end is not None else None
    size = path.stat().st_size if path.is_file() else sum(each.stat().st_size for each in path.rglob("*"))
    return RecordResult(path, status, events, size, notes, reason, problem)
