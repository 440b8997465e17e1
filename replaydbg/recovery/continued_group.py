"""The directory of a group that goes on: its rows, its clock, and what its processes had sent and received by then."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from replaydbg.config import Settings, orders_of_tests
from replaydbg.errors import CannotRecord
from replaydbg.launch.process import Ended
from replaydbg.log.group import GroupProcess, continue_page
from replaydbg.log.logfile import TRANSFERS_HEADER, TRANSFERS_MAGIC
from replaydbg.log.reader import Recording
from replaydbg.log.shared import DIRECTORY
from replaydbg.log.transfers import (
    DEFINES,
    DEFINITION,
    SECTION,
    SECTION_HEADER,
    SLOT,
    TRANSFERS_FORMAT,
    transfers_before,
)
from replaydbg.record.group import RecordedGroup, can_name_library
from replaydbg.record.place import reason_of, write_start
from replaydbg.record.result import RecordResult
from replaydbg.record.start import Wishes
from replaydbg.recovery.recovery_line import KNOWN_AS, LineMember, RecoveryLine
from replaydbg.resume.plan import Plan
from replaydbg.resume.preparation import continued_header
from replaydbg.store.directory import GROUP, LIVE, SEALED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.json_data import HeaderData

_ADDRESS = 0
_PASSED = 255
_AT_DIGEST, _AT_ENDPOINT = 24, 40
"""Where in a transfer its digest is, and its endpoint."""


class ContinuedGroup:
    """The group's new directory, while its processes go on."""

    def __init__(self, line: RecoveryLine, output: Path | None, settings: Settings) -> None:
        """Make it, with the recordings of processes that have ended. Raises CannotRecord."""
        self._line = line
        self._group = RecordedGroup(output, settings, joins=can_name_library(), identity=line.opened.group.identity)
        self.directory = self._group.live.parent
        """Its directory."""
        self._header: HeaderData | None = None
        try:
            self._begin()
        except OSError as error:
            self._group.abandon()
            raise CannotRecord(str(self.directory), reason_of(error)) from error

    def _begin(self) -> None:
        rows = [self._row(each) for each in self._line.members.values()]
        tickets = max((max(each.transfers.ticket, default=0) for each in self._line.opened.matching.members), default=0)
        continue_page(self.directory, [*rows, *map(self._other, self._line.others)], tickets)
        ended = [each for each in self._line.members.values() if not each.runs]
        for each in ended:
            self._link(each.number)
        blocks = self._line.directory / DIRECTORY
        if blocks.is_dir():
            (self.directory / DIRECTORY).mkdir(mode=0o700)
            for path in blocks.iterdir():
                _link(path, self.directory / DIRECTORY / path.name)
        if 1 not in {each.number for each in self._line.running}:
            self._group.live.rmdir()

    def _row(self, member: LineMember) -> GroupProcess:
        parent = self._line.members.get(member.row.parent)
        is_waited = parent is not None and 0 < member.row.waited <= parent.position
        row = member.row._replace(waited=member.row.waited if is_waited else 0)
        if member.runs:
            return row._replace(pid=0, status=None, status_from="", recording=f"{member.number}{SEALED}", why_not="")
        return row

    def _other(self, row: GroupProcess) -> GroupProcess:
        position = self._line.members[row.parent].position
        return row if row.waited <= position else row._replace(waited=0)

    def _link(self, number: int) -> None:
        """Add the recording of a process that has ended. Raises OSError."""
        name = f"{number}{SEALED}"
        if not (self._line.directory / name).exists():
            raise FileNotFoundError(2, f"the recording of process {number}, which has ended, was not sealed")
        _link(self._line.directory / name, self.directory / name)

    def begin_member(
        self, member: LineMember, recording: Recording, plan: Plan, settings: Settings
    ) -> dict[str, object]:
        """Make the live directory of a process; return the core's orders for it. Raises CannotRecord, Corrupt."""
        live = self.live(member.number)
        if member.number != 1:
            live.mkdir(mode=0o700)
        unpacked = recording.unpack(live)
        del unpacked
        header = continued_header(recording, live, plan)
        header["name"] = f"{self.directory.name.removesuffix(GROUP)}/{member.number}"
        header["group"] = self._line.opened.group.identity
        header["process"] = member.number
        if recording.header.branch is not None:
            header["branch"] = recording.header.raw["branch"]  # type: ignore[typeddict-unknown-key]
        for key, fact in ((KNOWN_AS, member.known_as), ("outputs", recording.header.raw.get("outputs"))):
            if fact is not None:
                header[key] = fact  # type: ignore[literal-required]
        write_start(live, header, {})
        if member.number == 1 or self._header is None:
            self._header = header
            self._wishes = Wishes(
                settings.max_size, header["real_ids"], header["chaos"], settings.on_deadlock, header["durable"]
            )
        data, endpoints, addresses = continued_transfers(recording, member.position)
        (live / SECTION).write_bytes(data)
        return {
            **self._group.as_boot(),
            "process": member.number,
            "endpoints": endpoints,
            "addresses": addresses,
        }

    def live(self, number: int) -> Path:
        """Return the live directory of a process."""
        return self.directory / f"{number}{LIVE}"

    def start_sealer(self) -> None:
        """Start the process that seals recordings, and let programs join. Raises CannotRecord."""
        assert self._header is not None
        self._group.invite(self._wishes, [], orders_of_tests())
        self._group.start_sealer(self._header)

    def abandon(self) -> None:
        """Remove it: no process went live."""
        self._group.abandon()

    def seal(self, ended: Ended, seconds: float) -> RecordResult:
        """Seal what has ended; `ended`: how the first process did. Raises CannotRecord."""
        if self.live(1).exists():
            return self._group.seal(ended, seconds)
        self._group.finish(ended.status)
        return RecordResult(self.directory / f"1{SEALED}", ended.status, 0, 0, [], None, None)


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, target)
        target.chmod(0o600)


def continued_transfers(recording: Recording, position: int) -> tuple[bytes, int, int]:
    """Return the section up to a position, with the numbers of its endpoints and addresses.

    Transfers that had not ended at the position are void: their calls are made again.
    """
    whole = b"".join(recording.pieces(SECTION)) if recording.size(SECTION) else b""
    data = bytearray(transfers_before(whole, max(position, 1)) if whole else b"")
    if not data:
        data = bytearray(SECTION_HEADER.pack(TRANSFERS_MAGIC, TRANSFERS_FORMAT, 0, TRANSFERS_HEADER))
    endpoints = addresses = 0
    at = TRANSFERS_HEADER
    while at < len(data):
        if data[at + SLOT - 1] == DEFINES:
            kind, slots, number, *_ = DEFINITION.unpack_from(data, at)
            if kind == _ADDRESS:
                addresses = max(addresses, number)
            elif kind != _PASSED:
                endpoints = max(endpoints, number)
            at += max(slots, 1) * SLOT
            continue
        event = int.from_bytes(data[at : at + 8], "little")
        if not 1 <= event <= position:
            data[at + _AT_DIGEST : at + _AT_DIGEST + 8] = bytes(8)
            data[at + _AT_ENDPOINT : at + _AT_ENDPOINT + 4] = bytes(4)
        at += SLOT
    return bytes(data), endpoints, addresses
