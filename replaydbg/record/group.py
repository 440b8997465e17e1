"""Record a program together with its children: the directory of the group, and the process that seals."""

from __future__ import annotations

import errno
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.config import Settings
from replaydbg.errors import CannotRecord, Corrupt, ReplaydbgError, UsageError
from replaydbg.events.run_facts import command_of
from replaydbg.launch import interpreter
from replaydbg.log.group import (
    FACTS,
    FINDS_NOTHING,
    GROUP,
    HIDDEN_PAGE,
    IS_OTHER,
    IS_OURS,
    ORDERS,
    PAGE,
    WAKE,
    WHY_NOT,
    GroupProcess,
    has_unborn,
    is_recorded,
    lock_page,
    new_page,
    page_rows,
    read_group,
    reasons_of,
    size_of_group,
)
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.unfinished_group import hold_while_made
from replaydbg.native import join_library
from replaydbg.record.place import (
    absolute_output,
    check_name_fits,
    check_no_group,
    check_replaceable,
    leave_group,
    reason_of,
    removed_unless_begun,
    shared_store,
    sync_path,
)
from replaydbg.record.sealer.sealer_process import SealerProcess
from replaydbg.store.directory import (
    LIVE,
    SEALED,
    Store,
    group_path,
    index_path,
    is_group,
    live_path,
    sealed_path,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.gates.row import Row
    from replaydbg.launch.process import Ended
    from replaydbg.log.json_data import HeaderData
    from replaydbg.record.kept_names import KeptName
    from replaydbg.record.result import RecordResult
    from replaydbg.record.start import Wishes

_NEVER_RECORDED = ("", *(WHY_NOT[number] for number in (IS_OTHER, FINDS_NOTHING, IS_OURS)))
"""Reasons for which a process is no part of a recording: nobody misses it there."""
_YOUNG = 0.5
"""Seconds after which a started program is no longer waited for: it is what it is known to be by then."""
_NOT_SEALED = "the process that seals the recordings of other processes was killed: they stay directories"
_IN_USE = "it exists: another recording is being written to it, its recorder was killed, or it is not a recording"


class NoGroups(CannotRecord):
    """Only one process can be recorded: the file system has no fifos, or the system no descriptors of processes."""


class RecordedGroup:
    """The group that is being recorded: a directory, and in it the live directory of its first process."""

    def __init__(
        self,
        output: Path | None,
        settings: Settings,
        *,
        joins: bool,
        blocks: Path | None = None,
        identity: str | None = None,
        only_failing: bool = False,
        tags_failing: bool = False,
    ) -> None:
        """Make it; `joins`: Python programs that are started join it; `blocks` and `only_failing`: see `record`.

        `identity` is that of the group that goes on in it; None: it is a new one. `tags_failing`: it gets the tag of
        runs that failed, also if a request fails after the first process has ended.

        Raises CannotRecord, NotBuilt, or UsageError if they cannot be asked to.
        """
        self._library = library_for("--children=python", "use --children=fork") if joins else None
        self._identity = os.urandom(16).hex() if identity is None else identity
        self._store = shared_store(output, settings.store)
        """The store that it is in; None: the user has named its directory."""
        self._only_failing = only_failing
        self._tags_failing = tags_failing
        self._sealer: SealerProcess | None = None
        self._header: HeaderData | None = None
        self._replaced: Path | None = None
        """The file of an earlier recording that has the user's name."""
        try:
            store = Store(settings.store)
            directory = store.create_group().absolute() if output is None else self._named(absolute_output(output))
        except OSError as error:
            raise CannotRecord(str(output or settings.store), reason_of(error)) from error
        self._blocks = BlockPlaces(directory, self._store) if blocks is None else BlockPlaces(blocks)
        self.live = directory / f"1{LIVE}"
        """The live directory of the first process."""
        self._held = -1
        """A descriptor by which the directory is held while it is made."""
        try:
            self._held = hold_while_made(directory)
            self.live.mkdir(mode=0o700)
        except OSError as error:  # somebody has removed it
            self._let_go()
            raise CannotRecord(str(directory), reason_of(error)) from error
        try:
            new_page(directory / PAGE, settings.max_size)
            os.close(os.pidfd_open(os.getpid()))  # the sealer needs one of each process
            os.mkfifo(directory / WAKE, 0o600)
        except BaseException as error:
            self._remove()
            if isinstance(error, OSError):
                has_none = error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
                raise (NoGroups if has_none else CannotRecord)(str(directory), reason_of(error)) from error
            raise

    @contextmanager
    def removed_unless_begun(self) -> Iterator[None]:
        """Remove the group if the block raises before the program has a log."""
        try:
            with removed_unless_begun(self.live):
                yield
        except BaseException:
            self.finish(None)
            if not self.live.is_dir():
                self._remove()
            raise

    def describe(self, header: HeaderData, outputs: tuple[int, int]) -> None:
        """Add the group's fields to the header of the first process; `outputs` are its standard output and error."""
        header["name"] = f"{self.live.parent.name.removesuffix(GROUP)}/1"
        header["group"] = self._identity
        header["process"] = 1
        header["outputs"] = [interpreter.stream_identity(fd) for fd in outputs]
        self._header = header

    def as_boot(self) -> dict[str, object]:
        """Return the core's orders."""
        joins = {} if self._library is None else {"joins": os.fsencode(self._library)}
        return {"group": os.fsencode(self.live.parent / PAGE), "process": 1, **joins}

    def invite(self, wishes: Wishes, rows: list[Row], tests: dict[str, int], ends: Sequence[KeptName] = ()) -> None:
        """Write what a Python that joins has to know; `rows` are gates of other packages. Raises CannotRecord.

        `ends` are those that it may inherit of a group that goes on. Also if the programs that are started do not join:
        one may by `record --join`.
        """
        orders = {
            "group": self._identity,
            "boot": boot_id(),
            "joins": self._library is not None,
            "name": self.live.parent.name.removesuffix(GROUP),
            "wishes": list(wishes),
            "rows": [list(row) for row in rows],
            "tests": tests,
            "ends": [each.as_json() for each in ends],
        }
        partial = self.live.parent / f".{ORDERS}"
        try:
            partial.write_text(json.dumps(orders), encoding="utf-8")
            partial.replace(self.live.parent / ORDERS)  # somebody may be about to join, and read the earlier one
            if wishes.durable:
                for name in (ORDERS, PAGE, ""):
                    sync_path(self.live.parent / name)
        except OSError as error:
            raise CannotRecord(str(self.live.parent), reason_of(error)) from error

    def start_sealer(self, header: HeaderData) -> None:
        """Start the process that seals the recordings of children. Raises CannotRecord."""
        command = command_of(header["kind"], header["target"], header["argv"])
        self._sealer = SealerProcess(
            self.live.parent, self._identity, command, self._blocks, only_failing=self._only_failing
        )
        self._let_go()

    def _let_go(self) -> None:
        """Hold the directory no longer: all of the group is there, or nothing will be."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def seal(self, ended: Ended, seconds: float) -> RecordResult:
        """Seal the recording of the first process, and wait until those of ended children are sealed.

        If no other process was recorded, it becomes an ordinary recording beside the group's directory, which is
        removed. Raises CannotRecord, and leaves nothing, if the program did not run.
        """
        # Imported here: they are loaded while the program runs.
        from replaydbg.log.sealed.group_blocks import common_of
        from replaydbg.record.sealing import seal_recording
        from replaydbg.record.snapshots import await_snapshots

        directory = self.live.parent
        await_snapshots(self.live)  # copies of the process write them by their paths
        if self._library is not None:
            _await_young(directory)
        rows: list[GroupProcess] = []
        more = 0
        with suppress(OSError, Corrupt):  # somebody has removed the group
            rows, more = page_rows(directory)
        is_alone = self._has_left()
        passes = False
        if self._only_failing:
            # Imported here: few recordings are dropped.
            from replaydbg.record.sealer.failing import dropped, has_failed, others_have_failed

            passes = not has_failed(self.live, ended.status)
            if passes and (is_alone or not others_have_failed(directory)):
                result = dropped(self.live, ended)
                if not is_alone:
                    self.abandon()
                return result
        try:
            common = common_of(self._blocks, 1, rows)
            store, secrets = (self._store, set()) if is_alone else (None, _secrets_of_others(self.live))
            result = seal_recording(self.live, ended, seconds, common=common, store=store, secrets=secrets)
        except CannotRecord:
            if not is_alone:
                self.finish(None)
                self._remove()
            raise
        if is_alone:
            return result._replace(not_recorded=reasons_of(rows, more))
        if not self.finish(ended.status, passes=passes) and not result.problem:
            result = result._replace(problem=_NOT_SEALED)
        self._remove_replaced()
        if not (directory / FACTS).exists():
            return result
        group = read_group(directory)
        not_recorded = reasons_of(group.processes, group.more)
        return result._replace(group=group, not_recorded=not_recorded, size=size_of_group(directory))

    def _has_left(self) -> bool:
        """Turn the group into the live directory of an ordinary recording, if it has nothing else to show."""
        from replaydbg.record.sealing import remove_following  # imported while the program runs

        directory = self.live.parent
        page, hidden = directory / PAGE, directory / HIDDEN_PAGE
        alone = directory.with_name(directory.name.removesuffix(GROUP) + LIVE)
        try:
            with page.open("rb") as file:
                if os.path.lexists(alone) or _has_others(directory, PAGE) or not lock_page(file.fileno()):
                    return False
                page.rename(hidden)  # from now on, nobody joins
                if _has_others(directory, HIDDEN_PAGE):
                    hidden.rename(page)
                    return False
                remove_following(self.live)
                self.live.rename(alone)
                with suppress(OSError):  # who waits for the lock shall see that the group is gone
                    hidden.unlink()
        except (OSError, ReplaydbgError):  # somebody removes the group, or the disk is full
            with suppress(OSError):
                hidden.rename(page)
            return False
        if self._sealer is not None:
            self._sealer.dismiss()
            self._sealer = None
        self._remove()
        self.live = alone
        if self._header is not None:
            leave_group(alone, self._header)
        return True

    def abandon(self) -> None:
        """Remove the group: its processes do not run."""
        if self._sealer is not None:
            self._sealer.dismiss()
            self._sealer = None
        self._remove()

    def finish(self, status: int | None, *, passes: bool = False) -> bool:
        """Wait until the recordings of children that have ended are sealed; `status` is the program's.

        `passes`: nothing has failed in it, and the group is removed if nothing fails in the others that still run.
        Returns False if the process that seals was killed.
        """
        sealer, self._sealer = self._sealer, None
        return sealer is None or sealer.finish(status, passes=passes, tags_failing=self._tags_failing)

    def _remove(self) -> None:
        self._let_go()
        directory = self.live.parent
        # What cannot be removed hides nothing: it is no group.
        with suppress(OSError):
            for name in (PAGE, HIDDEN_PAGE, WAKE, ORDERS, FACTS):
                (directory / name).unlink(missing_ok=True)
            with suppress(OSError):
                directory.rmdir()
                return
            # Imported here: a group without children, the usual case, would wait for it.
            from replaydbg.store.removing import remove_group

            remove_group(directory)

    def _named(self, output: Path) -> Path:
        """Make the group's directory under the user's name."""
        check_name_fits(output)
        is_named_group = output.name.endswith(GROUP)
        if not is_named_group:
            check_replaceable(output)
        sealed = sealed_path(output.with_name(output.name.removesuffix(GROUP).removesuffix(SEALED) + LIVE))
        check_replaceable(sealed)
        if is_named_group and os.path.lexists(sealed):
            raise CannotRecord(str(sealed), "it exists, and -o has another name")
        if os.path.lexists(live_path(sealed)) and not _remove_if_sealed(live_path(sealed)):
            raise CannotRecord(str(live_path(sealed)), _IN_USE)
        directory = group_path(sealed)
        check_no_group(directory)
        directory.mkdir(mode=0o700)
        self._replaced = sealed
        return directory

    def _remove_replaced(self) -> None:
        """Remove an earlier file of the same name: a user who opens it wants the new recording."""
        if self._replaced is not None and is_group(self.live.parent):
            for path in (self._replaced, index_path(self._replaced)):
                with suppress(OSError):
                    path.unlink()


def _remove_if_sealed(live: Path) -> bool:
    # Imported here: it seldom happens, and takes longer to load than the start itself.
    from replaydbg.store.sealed_leftovers import remove_if_sealed

    return remove_if_sealed(live)


def _await_young(directory: Path) -> None:
    """Wait for programs that were started just now: until they have begun, nobody knows that they are Python."""
    until = time.monotonic() + _YOUNG
    while time.monotonic() < until:
        try:
            rows, _ = page_rows(directory)
        except (OSError, Corrupt):
            return
        if not any(row.how == "other" and row.status is None and _age(row.pid) < _YOUNG for row in rows):
            return
        time.sleep(0.005)


def _age(pid: int) -> float:
    """Return for how many seconds a process has run; infinite if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return math.inf
    if fields[0] in (b"Z", b"X"):
        return math.inf
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _has_others(directory: Path, page: str) -> bool:
    """Whether another process makes it a group: it is recorded, or about to be, or its recording is missed."""
    rows, more = page_rows(directory, page)
    # What took the first one's place by an exec has to be shown, whatever it is.
    belong = any(is_recorded(row) or row.how == "exec" or row.why_not not in _NEVER_RECORDED for row in rows[1:])
    return belong or more > 0 or has_unborn(directory, page)


def can_name_library() -> bool:
    """Whether LD_PRELOAD can name the library by which Python programs join."""
    path = join_library(interpreter.soabi())
    return " " not in path and ":" not in path


def library_for(option: str, instead: str = "") -> str:
    """Return the path of the library by which programs join, for an option. Raises NotBuilt, or UsageError."""
    path = join_library(interpreter.soabi())
    if not can_name_library():
        raise UsageError(
            f"{option} cannot be used: the path of replaydbg's library contains a space or a colon ({path!r}), and "
            f"LD_PRELOAD cannot name it. Install replaydbg elsewhere{f', or {instead}' if instead else ''}."
        )
    return path


def boot_id() -> str:
    """Return what identifies this start of the system; empty: unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _secrets_of_others(live: Path) -> set[bytes]:
    # Imported here: most programs have no children.
    from replaydbg.record.sealer.group_secrets import secrets_of_others

    return secrets_of_others(live)
