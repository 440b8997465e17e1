"""Keep the recording of a group's future: those of its processes, each with its past, and of those that had ended."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree

from replaydbg.errors import CannotRecord
from replaydbg.futures.future import Future
from replaydbg.futures.kept_futures import copy_file, cpu_before, future_header, write_notes
from replaydbg.group_futures.future_group import RunningGroup
from replaydbg.launch.process import Ended
from replaydbg.log.group import PAGE, Group, GroupProcess, page_rows, write_group
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import common_of
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.transfers import SECTION
from replaydbg.log.unfinished_group import hold_while_made
from replaydbg.record.place import (
    absolute_output,
    check_name_fits,
    check_no_group,
    reason_of,
    shared_store,
    write_start,
)
from replaydbg.record.sealer.group_secrets import secrets_of_others
from replaydbg.record.sealing import STAYS, seal_recording
from replaydbg.recovery.continued_group import link_or_copy, sealed_member
from replaydbg.recovery.recovery_line import KNOWN_AS, LineMember, RecoveryLine
from replaydbg.resume.preparation import first_orders, written_to
from replaydbg.store.directory import GROUP, LIVE, SEALED, Store, member_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.sealed.group_blocks import Common


class GroupKeeper:
    """Keeps recordings of futures, until one cannot be written: then the results are still reported."""

    def __init__(self, line: RecoveryLine, output: Path | None, store: Path) -> None:
        """`line` is where they begin; `output`: the directory in which they are kept, None: they are in `store`."""
        self._line, self._output, self._store = line, output, store
        self.unkept = ""
        """Why one was not kept, and so no later one was; empty: all that were wanted were."""

    def keep(self, running: RunningGroup, future: Future, name: str) -> Path | None:
        """Write the recordings of a future that has ended; return the group's directory. None: see `unkept`."""
        if self.unkept:
            return None
        try:
            return self._kept(running, future, name)
        except CannotRecord as error:
            self.unkept = error.reason
            return None

    def _kept(self, running: RunningGroup, future: Future, name: str) -> Path:
        try:
            try:
                directory = self._made(name)
            except CannotRecord as error:
                raise CannotRecord(str(self._output), f"{name}{GROUP}: {error.reason}") from error
            held = hold_while_made(directory)
        except OSError as error:
            raise CannotRecord(str(self._output or self._store), reason_of(error)) from error
        try:
            with written_to(directory):
                self._write(directory, running, future)
        except BaseException:
            rmtree(directory, ignore_errors=True)  # the past is in its recordings, and nobody can go on with the rest
            raise
        finally:
            os.close(held)
        return directory

    def _made(self, name: str) -> Path:
        if self._output is None:
            return Store(self._store).create_group().absolute()
        path = absolute_output(self._output / f"{name}{GROUP}")
        check_name_fits(path)
        check_no_group(path)
        path.mkdir(mode=0o700)
        return path

    def _write(self, directory: Path, running: RunningGroup, future: Future) -> None:
        (directory / PAGE).write_bytes(running.rows())
        rows, more = page_rows(directory)
        blocks = self._line.directory / DIRECTORY
        if blocks.is_dir():
            (directory / DIRECTORY).mkdir(mode=0o700)
            for path in blocks.iterdir():
                link_or_copy(path, directory / DIRECTORY / path.name)
        for member in self._line.members.values():
            if not member.runs:
                path = sealed_member(self._line, member)
                link_or_copy(path, directory / path.name)
        ended = {}
        common = BlockPlaces(directory, shared_store(self._output, self._store))
        for index, member in enumerate(self._line.running):
            self._write_member(directory, member, index, running, common_of(common, member.number, rows), future)
            ended[member.number] = running.found[index].status if index in running.found else None
        facts = [self._row(row, ended) for row in rows if row.number in self._line.members or row.recording is None]
        (directory / PAGE).unlink()
        write_group(directory, Group(self._line.opened.group.identity, facts, more, is_complete=True))

    def _row(self, row: GroupProcess, ended: dict[int, int | None]) -> GroupProcess:
        known = next(each for each in self._line.opened.group.processes if each.number == row.number)
        row = row._replace(argv=known.argv)
        if row.number not in self._line.members:
            return row
        if row.number in ended:
            status = ended[row.number]
            return row._replace(
                has_ended=True, status=status, status_from="system", recording=f"{row.number}{SEALED}", why_not=""
            )
        return known._replace(waited=row.waited, recording=f"{row.number}{SEALED}", why_not="")

    def _write_member(
        self,
        directory: Path,
        member: LineMember,
        index: int,
        running: RunningGroup,
        common: Common | None,
        future: Future,
    ) -> None:
        """Write the recording of a process that went on."""
        copy, live = running.members[index], directory / f"{member.number}{LIVE}"
        live.mkdir(mode=0o700)
        with open_recording(member_path(self._line.directory, member.number)) as recording:
            recording.unpack(live)
            copy_file(copy.log, live / "log")
            if os.fstat(copy.world.fileno()).st_size:
                copy_file(copy.world, live / "world")
            copy_file(running.transfers[index], live / SECTION)
            own = running.found.get(index, future)
            write_notes(live, recording, member.position, copy, own)
            header = future_header(recording, self._line.name, live, member.position, copy)
            facts: dict[str, object] = dict(header)
            facts |= {
                "name": f"{directory.name.removesuffix(GROUP)}/{member.number}",
                "group": self._line.opened.group.identity,
                "process": member.number,
                KNOWN_AS: member.known_as,
                "future": {"from": self._line.name, "event": member.position, "seed": running.seed},
            }
            facts |= {key: recording.header.raw[key] for key in ("branch", "outputs") if recording.header.raw.get(key)}
            write_start(live, facts, first_orders(recording.header))  # type: ignore[arg-type]
            ended = Ended(own.status, cpu_before(recording) + own.cpu_seconds)
            unknown = None if index in running.found else "another process had decided the future"
            secrets = secrets_of_others(live)
            result = seal_recording(live, ended, own.cpu_seconds, unknown=unknown, common=common, secrets=secrets)
        if result.problem is not None:
            raise CannotRecord(str(live), result.problem.partition(STAYS)[0])  # it is removed
