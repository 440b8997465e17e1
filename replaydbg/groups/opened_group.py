"""A group of recorded processes and the channels between them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from replaydbg.distributed.matching.columns import Member, Moves
from replaydbg.distributed.matching.matching import GroupMatching
from replaydbg.errors import Corrupt, ReplaydbgError
from replaydbg.events.records import Event, Site
from replaydbg.events.values import ContentRef
from replaydbg.log.group import Group, GroupProcess, read_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sources import recorded_source, source_text, what_was_read
from replaydbg.log.transfers import has_transfers, read_transfers
from replaydbg.store.directory import member_path


def open_member(directory: Path, group: Group, process: GroupProcess) -> Recording:
    """Open the recording of a process. Raises a ReplaydbgError, also if the recording there is another one's."""
    recording = open_recording(member_path(directory, process.number))
    if (recording.header.group, recording.header.process) != (group.identity, process.number):
        recording.close()
        raise Corrupt(str(recording.path), "it is the recording of another process")
    return recording


MOST_BYTES = 1 << 53
"""Bytes that one process can have moved: offsets in a channel of all processes then fit into 64 bits."""


MOST_EVENTS = 1 << 62
"""Events that one process can have."""

MOST_CONTENT = 64 << 20
"""Bytes of one channel that are read to find the order of what several processes sent."""

MOST_PASSES = 200
"""Channels for which that is done: a recording can claim any number of them."""


def received_bytes(recording: Recording, event: Event) -> bytes:
    """Return the bytes that an event received; nothing if it does not have them as a whole. Raises Corrupt."""
    outcome = event.filled
    if outcome is None:
        outcome = event.outcome[0] if isinstance(event.outcome, tuple) and event.outcome else event.outcome
    if isinstance(outcome, ContentRef):
        outcome = recording.content(outcome)
    return bytes(outcome) if isinstance(outcome, bytes | bytearray) else b""


class OpenedGroup:
    """The processes of a group and the channels between them."""

    def __init__(self, directory: Path) -> None:
        """Read what the processes sent and received. Raises NotARecording, or Corrupt."""
        self.directory = directory
        self.group = read_group(directory)
        self.problems: dict[int, str] = {}
        """Problems of recordings, by the number of the process: such a process counts as not recorded."""
        self.cwd: dict[int, str] = {}
        """The working directory of each process at its start."""
        self._read: dict[int, dict[str, bytes]] = {}
        self._lines: dict[tuple[int, str], list[str]] = {}
        self._passes = 0
        self._sites: dict[tuple[int, int], Site | None] = {}
        members = []
        self.has_transfers = False
        """Whether any process has a record of what it sent and received."""
        for process in self.group.processes:
            if process.recording is None:
                continue
            try:
                members.append(self._member(process))
            except ReplaydbgError as error:
                self.problems[process.number] = str(error)
        self.matching = GroupMatching(members, self._contents)

    def _member(self, process: GroupProcess) -> Member:
        with open_member(self.directory, self.group, process) as recording:
            self.cwd[process.number] = recording.header.cwd
            endpoints, columns = read_transfers(recording)
            if sum(columns.length) >= MOST_BYTES:
                raise Corrupt(str(recording.path), "it claims to have sent and received more bytes than a machine can")
            self.has_transfers |= has_transfers(recording)
            branch, log = recording.header.branch, recording.log_header
            place = (branch.event, branch.process) if branch is not None else (0, 0)
            if log is None:
                raise Corrupt(str(recording.path), "it has no event log")
            events = log.crossings
            if events >= MOST_EVENTS:
                raise Corrupt(str(recording.path), "it claims more events than a machine can execute")
            return Member(process.number, endpoints, columns, *place, process.pid, events)

    def _contents(self, receives: Moves) -> dict[int, bytes]:
        """Return the bytes that receives took, by their index: a pass over the log of each process."""
        self._passes += 1
        if self._passes > MOST_PASSES:
            return {}
        indexes: dict[int, dict[int, int]] = {}
        for at, (member, event) in enumerate(zip(receives.member, receives.event, strict=True)):
            indexes.setdefault(member, {})[event] = at
        found: dict[int, bytes] = {}
        left = MOST_CONTENT
        for member, events in indexes.items():
            try:
                with open_recording(member_path(self.directory, receives.members[member].process)) as recording:
                    for entry in recording.events(first=min(events), last=max(events), controls=False):
                        if not isinstance(entry, Event) or entry.number not in events or left <= 0:
                            continue
                        data = received_bytes(recording, entry)
                        left -= len(data)
                        found[events[entry.number]] = data
            except ReplaydbgError:
                continue
        return found

    @property
    def name(self) -> str:
        """Its name, such as `run-12`."""
        return self.directory.name.removesuffix(".rdbgs")

    def index_of(self, process: int) -> int | None:
        """Return the index of a process among the members; None: it has no recording that can be read."""
        numbers = [each.process for each in self.matching.members]
        return numbers.index(process) if process in numbers else None

    def member(self, process: int) -> Member:
        """Return a process that has a recording that can be read."""
        index = self.index_of(process)
        assert index is not None, process
        return self.matching.members[index]

    def owner(self, process: int, event: int) -> tuple[int, int]:
        """Return the process that an event belongs to, and its number there.

        What the recording of a child has from before its fork is its parent's, under the same number.
        """
        while (index := self.index_of(process)) is not None:
            member = self.matching.members[index]
            if not 0 < event < member.branch or not 0 < member.parent < process:
                break
            process = member.parent
        return process, event

    def site(self, process: int, event: int) -> Site | None:
        """Return from where an event crossed; None: there is no such event that can be read."""
        if (process, event) not in self._sites:
            self.read_sites([(process, event)])
        return self._sites[process, event]

    def read_sites(self, places: Iterable[tuple[int, int]]) -> None:
        """Read the sites of events, each a process and a number: one pass over the log of each process."""
        wanted: dict[int, set[int]] = {}
        for process, event in places:
            if event and (process, event) not in self._sites:
                self._sites[process, event] = None
                wanted.setdefault(process, set()).add(event)
        for process, events in wanted.items():
            try:
                with open_recording(member_path(self.directory, process)) as recording:
                    for entry in recording.events(first=min(events), last=max(events), controls=False):
                        if isinstance(entry, Event) and entry.number in events:
                            self._sites[process, entry.number] = entry.site
            except ReplaydbgError:
                continue  # the others can be read

    def line(self, process: int, site: Site) -> str:
        """Return the text of the line of a site; empty: the recording does not have it."""
        if site.file is None or site.line is None:
            return ""
        if (process, site.file) not in self._lines:
            self._lines[process, site.file] = self._read_lines(process, site.file)
        lines = self._lines[process, site.file]
        return lines[site.line - 1].strip() if 0 < site.line <= len(lines) else ""

    def _read_lines(self, process: int, file: str) -> list[str]:
        """Return the lines of a file as recorded: no file is opened because a recording names it."""
        try:
            with open_recording(member_path(self.directory, process)) as recording:
                if process not in self._read:
                    self._read[process] = what_was_read(recording)
                data = recorded_source(recording, file, self._read[process])
        except ReplaydbgError:
            return []
        return source_text(data).splitlines() if data is not None else []
