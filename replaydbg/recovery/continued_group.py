"""The directory of a group that goes on: its rows, its clock, and what its processes had sent and received by then."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from replaydbg.config import Settings, orders_of_tests
from replaydbg.errors import CannotRecord, CannotResume, Corrupt
from replaydbg.launch.process import Ended
from replaydbg.log.cut_transfers import continued_transfers
from replaydbg.log.group import GroupProcess, continue_page
from replaydbg.log.reader import Recording
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.transfers import SECTION
from replaydbg.record.group import RecordedGroup, can_name_library
from replaydbg.record.kept_names import KeptName
from replaydbg.record.place import reason_of, write_start
from replaydbg.record.result import RecordResult
from replaydbg.record.sealer.group_sealer import UNKNOWN
from replaydbg.record.sealer.group_secrets import secrets_of_others
from replaydbg.record.sealing import seal_recording
from replaydbg.record.start import Wishes, wishes_of_recorded
from replaydbg.recovery.recovery_line import KNOWN_AS, LineMember, RecoveryLine
from replaydbg.resume.plan import Plan
from replaydbg.resume.preparation import continued_header, written_to
from replaydbg.store.directory import GROUP, LIVE, SEALED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.json_data import HeaderData


class ContinuedGroup:
    """The group's new directory, while its processes go on."""

    def __init__(self, line: RecoveryLine, output: Path | None, settings: Settings) -> None:
        """Make it, with the recordings of processes that have ended. Raises CannotRecord, CannotResume."""
        self._line = line
        self._group = RecordedGroup(output, settings, joins=can_name_library(), identity=line.opened.group.identity)
        self.directory = self._group.live.parent
        """Its directory."""
        self._header: HeaderData | None = None
        self._wishes: Wishes | None = None
        try:
            self._begin()
        except OSError as error:
            self._group.abandon()
            raise CannotRecord(str(self.directory), reason_of(error)) from error
        except CannotResume:
            self._group.abandon()
            raise

    def _begin(self) -> None:
        rows = [self._row(each) for each in self._line.members.values()]
        tickets = max((max(each.transfers.ticket, default=0) for each in self._line.opened.matching.members), default=0)
        continue_page(self.directory, [*rows, *map(self._other, self._line.others)], tickets)
        ended = [each for each in self._line.members.values() if not each.runs]
        for each in ended:
            self._link(each)
        blocks = self._line.directory / DIRECTORY
        if blocks.is_dir():
            (self.directory / DIRECTORY).mkdir(mode=0o700)
            for path in blocks.iterdir():
                link_or_copy(path, self.directory / DIRECTORY / path.name)
        if 1 not in {each.number for each in self._line.running}:
            self._group.live.rmdir()

    def _row(self, member: LineMember) -> GroupProcess:
        parent = self._line.members.get(member.row.parent)
        is_waited = parent is not None and 0 < member.row.waited <= parent.position
        row = member.row._replace(waited=member.row.waited if is_waited else 0)
        if member.runs:
            return row._replace(pid=0, status=None, status_from="", recording=f"{member.number}{SEALED}", why_not="")
        return row._replace(recording=f"{member.number}{SEALED}", why_not="")

    def _other(self, row: GroupProcess) -> GroupProcess:
        position = self._line.members[row.parent].position
        return row if row.waited <= position else row._replace(waited=0)

    def _link(self, member: LineMember) -> None:
        """Add the recording of a process that has ended, sealed. Raises OSError, and CannotResume."""
        path = sealed_member(self._line, member)
        link_or_copy(path, self.directory / path.name)

    def begin_member(
        self, member: LineMember, recording: Recording, plan: Plan, settings: Settings
    ) -> dict[str, object]:
        """Make the live directory of a process; return the core's orders for it. Raises CannotRecord, Corrupt."""
        live = self.live(member.number)
        with written_to(live):
            if member.number != 1:
                live.mkdir(mode=0o700)
            unpacked = recording.unpack(live)
            header = self._header_of(member, recording, plan)
            write_start(live, header, {})
            data, endpoints, addresses = continued_transfers(recording, member.position)
            (live / SECTION).write_bytes(data)
        if unpacked.is_world_cut:
            raise Corrupt(str(recording.path), "a part of the modules that it imported is missing")
        if member.number == 1 or self._header is None:
            self._header = header
            self._wishes = wishes_of_recorded(header, settings)
        return {
            **self._group.as_boot(),
            "process": member.number,
            "endpoints": endpoints,
            "addresses": addresses,
        }

    def _header_of(self, member: LineMember, recording: Recording, plan: Plan) -> HeaderData:
        header = continued_header(recording, self.live(member.number), plan)
        header["name"] = f"{self.directory.name.removesuffix(GROUP)}/{member.number}"
        header["group"] = self._line.opened.group.identity
        header["process"] = member.number
        if recording.header.branch is not None:
            header["branch"] = recording.header.raw["branch"]  # type: ignore[typeddict-unknown-key]
        for key, fact in ((KNOWN_AS, member.known_as), ("outputs", recording.header.raw.get("outputs"))):
            if fact is not None:
                header[key] = fact  # type: ignore[literal-required]
        return header

    def live(self, number: int) -> Path:
        """Return the live directory of a process."""
        return self.directory / f"{number}{LIVE}"

    def start_sealer(self) -> None:
        """Start the process that seals recordings, and let programs join. Raises CannotRecord."""
        assert self._header is not None
        self.invite(())
        self._group.start_sealer(self._header)

    def invite(self, ends: Sequence[KeptName]) -> None:
        """Let programs join, which may inherit `ends`. Raises CannotRecord."""
        assert self._wishes is not None
        self._group.invite(self._wishes, [], orders_of_tests(), ends)

    def abandon(self) -> None:
        """Remove it: no process went live."""
        self._group.abandon()

    def seal(self, ended: Ended, seconds: float) -> RecordResult:
        """Seal what has ended; `ended`: how the first process did. Raises CannotRecord."""
        if self.live(1).exists():
            return self._group.seal(ended, seconds)
        self._group.finish(ended.status)
        return RecordResult(self.directory / f"1{SEALED}", ended.status, 0, 0, [], None, None)


def sealed_member(line: RecoveryLine, member: LineMember) -> Path:
    """Return the sealed recording of a process that has ended before the cut. Raises OSError, and CannotResume."""
    path = line.directory / f"{member.number}{SEALED}"
    if not path.exists():  # whoever seals recordings was killed with the group
        status = member.row.status
        unknown = UNKNOWN if status is None else None
        live = line.directory / f"{member.number}{LIVE}"  # sealing it needs the recording of its parent
        secrets = secrets_of_others(live)
        result = seal_recording(live, Ended(status or 0, 0.0), 0.0, unknown=unknown, secrets=secrets)
        if result.problem:
            reason = f"the recording of process {member.number}, which has ended: {result.problem}"
            raise CannotResume(line.name, reason)
    return path


def link_or_copy(path: Path, target: Path) -> None:
    """Let `target` be the file at `path`, which never changes. Raises OSError."""
    try:
        os.link(path, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, target)
        target.chmod(0o600)
