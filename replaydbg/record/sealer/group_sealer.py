"""Seal the recordings of a group of processes, each as soon as its process has ended, without waiting for any other.

It runs as a process of its own, beside the launcher (`record/group.py`). Of each process it holds a pidfd, which the
kernel makes readable when that process has ended.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.launch.process import Ended
from replaydbg.log.allowance import load_json
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, read_log_header
from replaydbg.log.group import (
    FACTS,
    HIDDEN_PAGE,
    ORDERS,
    PAGE,
    WAKE,
    Group,
    GroupProcess,
    has_unborn,
    is_recorded,
    lock_page,
    page_rows,
    read_group,
    write_group,
)
from replaydbg.log.live_cuts import CUTS, read_live_cuts
from replaydbg.log.live_directory import remove_live
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import common_of
from replaydbg.log.sealed.origin import mark_live
from replaydbg.record.hiding import masked_argv, masked_words, masks_of
from replaydbg.record.sealer.failing import (
    NOTHING_FAILED,
    drop_group,
    has_failed,
    has_failed_request,
    note_failed_request,
)
from replaydbg.record.sealer.group_secrets import GroupSecrets
from replaydbg.record.sealing import seal_recording
from replaydbg.store.directory import is_group, sealed_path
from replaydbg.store.sealed_leftovers import remove_if_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PATIENCE = 0.5
"""Seconds in which a parent reports how its child ended, after the child has."""
_START = 10.0
"""Seconds in which the first program begins, if the launcher was killed while it started it."""
UNKNOWN = "how it ended is not known: its parent did not wait for it"


class _Watched:
    """A process of the group that is recorded, from its birth until its recording is sealed."""

    def __init__(self, pid: int) -> None:
        try:
            self.pidfd = os.pidfd_open(pid) if pid else -1
        except OSError:
            self.pidfd = -1  # it has ended, and was waited for
        self.pid = pid
        self.ended_at = 0.0 if self.pidfd >= 0 else time.monotonic()
        self.status: int | None = None

    def ends(self) -> None:
        """Note that it has ended."""
        self.ended_at = time.monotonic()
        if self.status is None:
            self.status = _status_of_zombie(self.pid)
        os.close(self.pidfd)
        self.pidfd = -1

    def close(self) -> None:
        """Watch it no longer."""
        if self.pidfd >= 0:
            os.close(self.pidfd)


def _status_of_zombie(pid: int) -> int | None:
    """Return the signal that ended a process nobody has waited for yet, negative; None: unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    # The last field is its status as waitpid() returns it; 0 also if we may not read it.
    if not fields or fields[0] != b"Z" or int(fields[-1]) == 0:
        return None
    return os.waitstatus_to_exitcode(int(fields[-1]))


def _argv(row: GroupProcess, live: Path, known: dict[int, list[str]]) -> list[str]:
    """Return the command line of a process whose recording has begun; a forked child has its parent's."""
    if row.how == "fork":
        return known.get(row.parent, [])
    try:
        data = (live / "header.json").read_bytes()
        header = load_json(data)
    except (OSError, ValueError):
        return []
    words = header.get("orig_argv") if isinstance(header, dict) else None
    return masked_words(data, [str(word) for word in words]) if isinstance(words, list) else []


def _replacements(rows: Iterable[GroupProcess]) -> list[int]:
    """Return the numbers of the processes that the first program has become, one after the other."""
    found = [1]
    for row in rows:
        if row.how == "exec" and row.parent == found[-1]:
            found.append(row.number)
    return found[1:]


class GroupSealer:
    """Follows the rows of a group's page, and seals."""

    def __init__(
        self, directory: Path, first: GroupProcess, identity: str, blocks: BlockPlaces, *, only_failing: bool = False
    ) -> None:
        """`only_failing`: recordings of processes in which nothing failed are removed."""
        self._directory = directory
        self._only_failing = only_failing
        self._nothing_failed = only_failing
        """Whether all of the group can be removed."""
        self._blocks = blocks
        self._synced: set[str] = set()
        """The paths of blocks that are on the disk."""
        self._identity = identity
        self._watched: dict[int, _Watched] = {}
        self._done: dict[int, GroupProcess] = {}
        self._argv: dict[int, list[str]] = {1: first.argv or []}
        self._secrets = GroupSecrets(directory)
        self._first = first
        self._tags_failing = False
        """Whether the group is tagged if a request has failed in it."""
        self._has_failed_request = False
        """Whether one has, in another process than the first."""
        self.is_complete = False
        """Whether `group.json` says that nothing is left to be done."""
        self._ended_at = 0.0
        self.is_over = False
        """Whether the first program has ended, and its recording is sealed or never will be."""

    def fds(self) -> dict[int, Callable[[], None]]:
        """Return the descriptors to wait for, each with what is to be done then."""
        return {each.pidfd: each.ends for each in self._watched.values() if each.pidfd >= 0}

    def meet(self) -> None:
        """Take note of new processes."""
        for row in self._rows():
            if row.number in self._watched or row.number in self._done or not is_recorded(row):
                continue
            if row.number == 1 and not self.is_over:
                continue  # the launcher's
            if row.has_ended and self._is_sealed(row.number):  # a group that goes on begins with it
                self._argv[row.number] = _argv(row, self._directory / f"{row.number}.rdbg-live", self._argv)
                self._done[row.number] = row
                continue
            self._watched[row.number] = _Watched(row.pid)

    def _is_sealed(self, number: int) -> bool:
        sealed = self._directory / f"{number}.rdbg"
        return sealed.exists() and not sealed.with_name(f"{number}.rdbg-live").exists()

    def seal(self, *, at_once: bool) -> None:
        """Seal the recordings of processes that have ended; `at_once`: no parent reports any more."""
        self._look_at_begun()
        now = time.monotonic()
        ended = [number for number, each in self._watched.items() if each.ended_at]
        rows = {row.number: row for row in self._rows()} if ended else {}
        for number in ended:
            watched, row = self._watched[number], rows.get(number)
            if row is None:  # somebody has removed the group
                del self._watched[number]
                continue
            status = row.status if row.status is not None else watched.status
            reports = now < watched.ended_at + _PATIENCE or self._is_launchers(number, rows.values())
            if status is None and row.recording and not at_once and reports:
                continue
            del self._watched[number]
            self._ended_at = max(self._ended_at, watched.ended_at)
            self._done[number] = self._sealed(row, watched, status, rows.values())
        if ended:
            self.write()

    def _is_launchers(self, number: int, rows: Iterable[GroupProcess]) -> bool:
        """Whether it is the launcher that reports how a process ended, once it has sealed its own recording."""
        return not self.is_over and number in _replacements(rows)

    def _look_at_begun(self) -> None:
        """Take note of those whose recording has begun, or never will: one that joins runs before it has begun."""
        waits = [number for number in self._watched if number not in self._argv]
        rows = {row.number: row for row in self._rows()} if waits else {}
        for number in waits:
            row, live = rows.get(number), self._directory / f"{number}.rdbg-live"
            if row is not None and row.recording:
                self._argv[number] = _argv(row, live, self._argv)
                with suppress(OSError):
                    mark_live(live)
            elif row is not None and not is_recorded(row):  # it runs unrecorded
                self._watched.pop(number).close()

    def _remove_unused(self, rows: list[GroupProcess]) -> None:
        """Remove the directories of children that could not open their logs, or whose parent was killed in the fork."""
        recorded = {f"{row.number}.rdbg-live" for row in rows if row.recording}
        for live in self._directory.glob("*.rdbg-live"):
            if live.name not in recorded:
                remove_live(live)

    def _sealed(
        self, row: GroupProcess, watched: _Watched, status: int | None, rows: Iterable[GroupProcess]
    ) -> GroupProcess:
        live = self._directory / f"{row.number}.rdbg-live"
        status_from = row.status_from or ("system" if status is not None else "")
        row = row._replace(has_ended=True, status=status, status_from=status_from, argv=self._argv.get(row.number))
        if row.why_not:  # it could not open the logs that were made for it, or ended before it had some
            if live.is_dir():
                remove_live(live)
            return row._replace(recording=None)
        if sealed_path(live).exists() and (not live.is_dir() or remove_if_sealed(live)):
            return row  # the launcher has sealed it, and was killed before it reported that
        header = _log_header(live)
        began = header.start_ns if header is not None else 0
        after = max(watched.ended_at - header.last_ns / 1e9, 0.0) if header is not None and header.last_ns else 0.0
        used = header.cpu_ms / 1000 if header is not None else 0.0
        ended = Ended(status or 0, used + (0.0 if row.status_from == "itself" else after))
        seconds = max(time.time() - began / 1e9, 0.0)
        common = common_of(self._blocks, row.number, rows, self._synced)
        try:
            self._secrets.of(row.number)  # known to the others, also where no key can be used
            secrets = self._secrets.of_others(row.number)
            if self._only_failing and self._is_dropped(row, rows):
                return row._replace(recording=None, why_not=NOTHING_FAILED)
            if row.number > 1 and has_failed_request(live):
                note_failed_request(self._directory)
                self._has_failed_request = True
            why = UNKNOWN if status is None else None
            result = seal_recording(live, ended, seconds, unknown=why, common=common, secrets=secrets)
        except (ReplaydbgError, OSError) as error:
            return row._replace(why_not=str(error))
        self._tag_failing()
        return row._replace(why_not=result.problem or "")

    def _tag_failing(self) -> None:
        """Tag the group, if its first process can no longer be noted to have a failed request."""
        if self._tags_failing and self._has_failed_request:
            # Imported here: few requests fail so late.
            from replaydbg.store.ring import keep_failing_group

            with suppress(ReplaydbgError, OSError):  # it is kept as long as it is in the ring
                keep_failing_group(self._directory)

    def _is_dropped(self, row: GroupProcess, rows: Iterable[GroupProcess]) -> bool:
        """Remove the recording of a process in which nothing failed, unless it is needed; return whether it was."""
        live = self._directory / f"{row.number}.rdbg-live"
        if has_failed(live, row.status):
            self._nothing_failed = False
            return False
        # A child that it has forked begins with its log.
        is_needed = any(
            each.how == "fork" and each.parent == row.number and each.number in self._watched for each in rows
        )
        if row.number == 1 or is_needed:
            return False
        remove_live(live)
        return True

    def _rows(self) -> list[GroupProcess]:
        try:
            return page_rows(self._directory)[0]
        except (OSError, ReplaydbgError):
            return []  # somebody removes the group

    @property
    def has_finished(self) -> bool:
        """Whether nothing is left to be sealed."""
        return self.is_over and not self._watched and not self._may_appear()

    def _may_appear(self) -> bool:
        """Whether a child of a process that was killed in its fork may yet appear, or the first program."""
        waited = time.monotonic() - self._ended_at
        if waited > _PATIENCE:
            return self._is_without_program() and waited < _START
        try:
            return has_unborn(self._directory) or self._is_without_program()
        except (OSError, ReplaydbgError):
            return False  # somebody has removed the group

    def _is_without_program(self) -> bool:
        """Whether the launcher was killed, and its program has not begun."""
        return 1 not in self._done and any(not row.pid for row in self._rows()[:1])

    def launcher_is_killed(self) -> None:
        """Take note that nobody else seals the recording of the first program, which may run, or be about to."""
        self.is_over = True
        self._nothing_failed = False
        self._ended_at = time.monotonic()
        with suppress(OSError):  # it was about to make an ordinary recording of the group
            (self._directory / HIDDEN_PAGE).rename(self._directory / PAGE)
        if not is_group(self._directory):  # it had just done so
            with suppress(OSError):
                # Imported here: a group is seldom removed, and each recording would wait for it.
                from replaydbg.store.removing import remove_group

                remove_group(self._directory)

    def first_ends(self, status: int | None, *, passes: bool = False, tags_failing: bool = False) -> None:
        """Take note that the launcher has sealed the recording of the first program; `passes`: nothing failed in it.

        `tags_failing`: see `RecordedGroup`; its launcher does not look at what happens from now on.
        """
        self._tags_failing = tags_failing
        self._tag_failing()
        self._nothing_failed = self._nothing_failed and passes
        has_recording = (self._directory / "1.rdbg").exists()
        why_not = "" if has_recording else "it could not be sealed"
        self._done[1] = self._first._replace(has_ended=True, status=status, status_from="launcher", why_not=why_not)
        self.meet()  # it may have replaced itself just now
        self.is_over = True
        for number in _replacements(self._rows()):  # what replaced it has ended so, too
            if number in self._watched:
                self._watched[number].status = status

    def write(self) -> None:
        """Write `group.json`; the page is no longer needed when all is done."""
        is_alone = False
        try:
            with (self._directory / PAGE).open("rb") as page:
                is_alone = self.has_finished and lock_page(page.fileno())
                if is_alone:
                    self.meet()
                self._write(is_complete=is_alone and self.has_finished)
        except FileNotFoundError:
            self.is_complete = self.has_finished  # somebody has removed the group
        except (OSError, ReplaydbgError):
            self.is_complete = is_alone and self.has_finished  # the disk is full: the page has the rows

    def _write(self, *, is_complete: bool) -> None:
        if is_complete and self._nothing_failed:
            self.is_complete = True
            drop_group(self._directory, self._blocks.store)
            return
        rows, more = page_rows(self._directory)
        rows = self._masked([self._row(each) for each in rows])
        has_begun = not is_complete or not self._is_without_program()
        cuts = tuple(read_live_cuts(self._directory))
        write_group(self._directory, Group(self._identity, rows, more, is_complete, cuts))
        self.is_complete = is_complete
        if is_complete:
            self._remove_unused(rows if has_begun else [])
            for name in (PAGE, WAKE, ORDERS, CUTS, *([] if has_begun else [FACTS])):
                (self._directory / name).unlink(missing_ok=True)
            if not has_begun:
                self._directory.rmdir()

    def _masked(self, rows: list[GroupProcess]) -> list[GroupProcess]:
        """Mask in command lines what is a secret of any process."""
        words = self._secrets.known
        if not words:
            return rows
        masks = masks_of(words)
        return [row._replace(argv=masked_argv(masks, row.argv) if row.argv else row.argv) for row in rows]

    def _row(self, row: GroupProcess) -> GroupProcess:
        done = self._done.get(row.number)
        if done is not None:
            return done._replace(pid=row.pid, waited=row.waited)
        return row._replace(argv=self._argv.get(row.number))


def _log_header(live: Path) -> LogHeader | None:
    try:
        with (live / "log").open("rb") as file:
            return read_log_header(file.read(LOG_HEADER))
    except OSError:
        return None


def seal_group(
    directory: Path, launcher: tuple[int, int], wake: int, blocks: BlockPlaces, *, only_failing: bool = False
) -> None:
    """Seal the recordings of children until the launcher has ended, and all of them.

    `launcher` has the descriptors by which the launcher reports its end, and is answered; `wake` is that of the group's
    fifo; `blocks` is where the blocks are that the recordings share; `only_failing`: see `GroupSealer`.
    """
    control, answer = launcher
    group = read_group(directory)
    sealer = GroupSealer(directory, group.processes[0], group.identity, blocks, only_failing=only_failing)
    while not sealer.is_complete:
        ready = _wait(sealer, [wake] if sealer.is_over else [wake, control])
        if wake in ready:
            with suppress(BlockingIOError):
                os.read(wake, 1 << 16)
        ends = not sealer.is_over and control in ready
        if ends:
            _hear(sealer, control)
        sealer.meet()
        _take_ends(sealer)
        sealer.seal(at_once=ends)
        if ends:
            sealer.write()
            with suppress(OSError):
                os.write(answer, b"x")
            os.close(answer)
            os.close(control)
        elif sealer.has_finished:
            sealer.write()


def _wait(sealer: GroupSealer, fds: list[int]) -> set[int]:
    ends = sealer.fds()
    poll = select.poll()
    for fd in [*fds, *ends]:
        poll.register(fd, select.POLLIN)
    waits = any(each.ended_at for each in sealer._watched.values()) or (sealer.is_over and not sealer._watched)
    # In the second case a process may have been killed before it could wake us.
    ready = {fd for fd, _ in poll.poll(_PATIENCE * 1000 if waits else 10_000)}
    for fd in ready & ends.keys():
        ends[fd]()
    return ready


def _take_ends(sealer: GroupSealer) -> None:
    """Take the ends of processes that were met just now."""
    ends = sealer.fds()
    poll = select.poll()
    for fd in ends:
        poll.register(fd, select.POLLIN)
    for fd, _ in poll.poll(0):
        ends[fd]()


def _hear(sealer: GroupSealer, control: int) -> None:
    """Read the launcher's message: the first program's status, or that it never started."""
    data = b""
    with suppress(OSError):
        data = os.read(control, 64)
    if not data:
        sealer.launcher_is_killed()
        return
    status, *words = data.split()
    sealer.first_ends(
        int(status) if status.strip(b"-").isdigit() else None, passes=b"passes" in words, tags_failing=b"tags" in words
    )
