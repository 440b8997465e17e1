"""Find where a file ended in a recovery line to which several processes of the group append.

None of them knows that: each log has the writes of its own process. All of these writes are in the file, those of each
process in its order, and only the order of the processes is open. So the end is where the last ones fit.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from replaydbg.classes import NamedTuple, replace
from replaydbg.events.records import Event
from replaydbg.log.entries.selected_events import PassedEvents
from replaydbg.log.reader import open_recording
from replaydbg.recovery.recovery_line import RecoveryLine
from replaydbg.resources.descriptions import Description
from replaydbg.resources.event_values import number_of
from replaydbg.resources.follow import GATES, ResourceHistory
from replaydbg.resources.kinds import LastFileWrite, OpenedFile, Resources, Unknown
from replaydbg.resume.digest import output_digest
from replaydbg.resume.in_flight import is_appended
from replaydbg.resume.reopening.compare_files import MOST_COMPARED
from replaydbg.resume.written import MOST_PARTIAL
from replaydbg.store.directory import member_path

_MOST_TRIED = 1 << 16
"""Places at which the search gives up: with equal lines of several processes their number is the product of the counts
of lines. If the end of the file is as the logs say, it needs a place for each write.
"""
_OF_OTHERS = Unknown("other processes append to the file, too")


class CommonAppends(NamedTuple):
    """The ends of files to which several processes of a group append."""

    resources: dict[int, Resources]
    """Of each process that goes on, with the sizes of these files and the places of its last writes."""
    differences: dict[str, str]
    """By the path of a file: that it does not end with what they wrote."""


class _Tail(NamedTuple):
    """The last bytes of a file: more than are compared."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        """Return the size of the file."""
        return self.start + len(self.data)

    def has(self, write: LastFileWrite, end: int) -> bool:
        """Whether a write is right before `end`, as far as the log shows what was written."""
        begin = end - write.length
        if write.digest is None or write.length > MOST_COMPARED or begin < self.start:
            return begin >= 0
        return output_digest(self.data[begin - self.start : end - self.start]) == write.digest


def common_appends(
    line: RecoveryLine, resources: dict[int, Resources], later: Mapping[str, Sequence[Sequence[LastFileWrite]]]
) -> CommonAppends:
    """Find the ends of files in the line; `later` has what was written to each after it. Reads the logs of all."""
    differences: dict[str, str] = {}
    for path, writes in _writes_in_line(line, _appended(resources)).items():
        found = find_end(path, writes, sum(each.length for own in later.get(path, ()) for each in own))
        if found is None:
            differences[path] = f"{path} does not end with what was written last"
            continue
        for process, own in resources.items():
            by_event = {event: place for (number, event), place in found.places.items() if number == process}
            opened = tuple(
                _completed(each, found.size, by_event)
                if isinstance(each, OpenedFile) and each.absolute == path
                else each
                for each in own.opened
            )
            resources = {**resources, process: replace(own, opened=opened)}
    return CommonAppends(resources, differences)


def _appended(resources: Mapping[int, Resources]) -> frozenset[str]:
    """Return the files that processes have open for appending."""
    return frozenset(
        each.absolute
        for own in resources.values()
        for each in own.opened
        if isinstance(each, OpenedFile) and isinstance(each.absolute, str) and is_appended(each) and not each.is_deleted
    )


# ---- the logs ----


def _writes_in_line(line: RecoveryLine, wanted: frozenset[str]) -> dict[str, dict[int, Sequence[LastFileWrite]]]:
    """Return what the processes appended to each file in the line, as far as a search can use it.

    Files that only one process has written to, or has open, are left out: it knows their ends.
    """
    found: defaultdict[str, dict[int, deque[LastFileWrite]]] = defaultdict(dict)
    users: defaultdict[str, set[int]] = defaultdict(set)
    for process, member in line.members.items() if wanted else ():
        for path, write in _appends_of(line, process, member.position):
            if path in wanted:
                users[path].add(process)
                if write is not None:
                    found[path].setdefault(process, deque(maxlen=_MOST_TRIED)).append(write)
    return {
        path: {process: tuple(each) for process, each in writes.items()}
        for path, writes in found.items()
        if len(users[path]) > 1
    }


def _appends_of(line: RecoveryLine, process: int, position: int) -> Iterator[tuple[str, LastFileWrite | None]]:
    """Yield what a process appended up to a position, by path and in order, and then each file that it has open."""
    branch = line.opened.member(process).branch  # what it did before its fork is its parent's
    with open_recording(member_path(line.directory, process)) as recording:
        history = ResourceHistory(recording, ())
        for entry in recording.selected_events(GATES.__contains__):
            if isinstance(entry, PassedEvents):
                history.apply_passed(entry)
                continue
            if isinstance(entry, Event) and entry.number > position:
                break
            history.apply(entry)
            if not isinstance(entry, Event) or entry.number <= branch or not entry.arguments:
                continue
            description = history.state.numbers.get(number_of(entry.arguments[0]))
            last = description.last_write if description is not None else None
            is_write = last is not None and last.event == entry.number
            if description is not None and is_write and description.has_flag(os.O_APPEND):
                yield _path(description), last
        for description in history.state.open:
            if description.numbers:
                yield _path(description), None


def _path(description: Description) -> str:
    node = description.node
    return node.path if node is not None and isinstance(node.path, str) else ""


# ---- the disk ----


class FileEnd(NamedTuple):
    """The end of a file in the line."""

    size: int
    places: dict[tuple[int, int], int]
    """Where the last writes begin, by process and event."""


def find_end(path: str, writes: Mapping[int, Sequence[LastFileWrite]], later: int) -> FileEnd | None:
    """Return where a file ended in the line; None: its bytes are not those that the processes wrote last.

    `writes` are those of each process, `later` is the number of bytes that were written after the line. Without such,
    the file can have what calls in flight wrote, of which at most MOST_PARTIAL bytes are passed over.
    """
    tail = _tail(path, later + MOST_PARTIAL + MOST_COMPARED)
    if tail is None:
        return None
    last, left = tail.end - later, _MOST_TRIED
    for size in (last,) if later else range(last, max(last - MOST_PARTIAL, 0) - 1, -1):
        places, tried = _places(tail, size, writes, left)
        if places is not None:
            return FileEnd(size, places)
        left -= tried
        if left <= 0:
            break
    return None


def _tail(path: str, length: int) -> _Tail | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        start = max(os.fstat(fd).st_size - length, 0)
        return _Tail(start, os.pread(fd, length, start))
    except OSError:
        return None  # it is a directory now, or a fifo
    finally:
        os.close(fd)


def _places(
    tail: _Tail, end: int, writes: Mapping[int, Sequence[LastFileWrite]], most: int
) -> tuple[dict[tuple[int, int], int] | None, int]:
    """Return where writes begin if the bytes before `end` are writes, among them the last one of each process.

    None: they are not, or that takes more than `most` places. Returns also how many it took. What lies more than
    MOST_COMPARED bytes before the end is not compared.
    """
    processes = sorted(writes)
    counts: tuple[int, ...] = (0,) * len(processes)
    found: dict[tuple[int, ...], _Step | None] = {counts: None}
    waiting = [(end, counts)]
    while waiting and len(found) <= most:
        position, counts = waiting.pop()
        if all(counts) or 0 < position <= end - MOST_COMPARED:
            return dict(_steps(found, counts)), len(found) - 1
        # Those whose last write is still to be found are tried first, so they are pushed last.
        for index in sorted(range(len(processes)), key=counts.__getitem__, reverse=True):
            own, count = writes[processes[index]], counts[index]
            following = (*counts[:index], count + 1, *counts[index + 1 :])
            if count < len(own) and following not in found and tail.has(own[-1 - count], position):
                begin = position - own[-1 - count].length
                found[following] = _Step(counts, (processes[index], own[-1 - count].event), begin)
                waiting.append((begin, following))
    return None, len(found) - 1


class _Step(NamedTuple):
    """One step of a search backwards through the writes of all processes."""

    before: tuple[int, ...]
    """How many writes of each process were found before it."""
    write: tuple[int, int]
    """The process and the event."""
    begin: int


def _steps(
    found: Mapping[tuple[int, ...], _Step | None], counts: tuple[int, ...]
) -> Iterator[tuple[tuple[int, int], int]]:
    while (step := found[counts]) is not None:
        yield step.write, step.begin
        counts = step.before


# ---- what a process knows then ----


def _completed(opened: OpenedFile, size: int, places: Mapping[int, int]) -> OpenedFile:
    """Return an open file with its size, and for one that is appended to the place of its last write."""
    last = opened.last_write
    if not is_appended(opened) or last is None:
        return replace(opened, size=size)
    place: int | Unknown = places.get(last.event, _OF_OTHERS)
    offset = opened.offset
    if _is_behind(opened, last):
        offset = place + last.length if isinstance(place, int) else place
    return replace(opened, size=size, offset=offset, last_write=replace(last, offset=place))


def _is_behind(opened: OpenedFile, last: LastFileWrite) -> bool:
    """Whether the recorded offset is that after the last write: it was computed from it, and nothing moved it since."""
    return isinstance(last.offset, int) and opened.offset == last.offset + last.length
