"""Find what the processes of a group appended to files after a recovery line.

They append it again, so the files are truncated to where they ended. The log shows that bytes are theirs: each write
has a digest. A file with anything else after its recorded end differs from what was recorded.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from replaydbg.classes import NamedTuple, replace
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.recovery.recovery_line import RecoveryLine
from replaydbg.resources.descriptions import Description
from replaydbg.resources.event_values import number_of
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resources.kinds import LastFileWrite, OpenedFile, Resources, Unknown
from replaydbg.resume.digest import output_digest
from replaydbg.resume.power_loss.recovered_files import Leftover
from replaydbg.resume.written import ends_with
from replaydbg.store.directory import member_path

_AT_END = Unknown("other processes can have appended to the file before")


class _Ends(NamedTuple):
    """The facts about the end of a file in the line that the processes which go on have."""

    sizes: list[int]
    """As far as they are recorded."""
    last_writes: list[LastFileWrite]


def writes_after(line: RecoveryLine) -> dict[str, list[list[LastFileWrite]]]:
    """Return what was written to each file after the line, by process. Reads each log that has later events."""
    writes: defaultdict[str, list[list[LastFileWrite]]] = defaultdict(list)
    for row in line.opened.group.processes:
        if row.recording is None:
            continue
        member, opened = line.members.get(row.number), line.opened.member(row.number)
        position = member.position if member is not None else opened.branch  # it was started after the line
        if position < opened.events:
            for path, own in _written_after(line, row.number, position).items():
                writes[path].append(own)
    return dict(writes)


def later_appends(
    resources: Mapping[int, Resources], writes: Mapping[str, Sequence[Sequence[LastFileWrite]]]
) -> tuple[Leftover, ...]:
    """Return the files that have nothing but later writes of the group after their ends in the line.

    `resources` are those of each process that goes on, `writes` what was written to each file after the line.
    """
    ends = _ends(resources)
    found = (_leftover(path, ends.get(path), own) for path, own in writes.items())
    return tuple(each for each in found if each is not None)


def _written_after(line: RecoveryLine, process: int, position: int) -> dict[str, list[LastFileWrite]]:
    """Return what a process wrote to each file after a position, in order."""
    found: defaultdict[str, list[LastFileWrite]] = defaultdict(list)
    with open_recording(member_path(line.directory, process)) as recording:
        history = ResourceHistory(recording, ())
        for entry in recording.events():
            history.apply(entry)
            if not isinstance(entry, Event) or entry.number <= position or not entry.arguments:
                continue
            number = number_of(entry.arguments[0])
            description = history.state.numbers.get(number) if number >= 0 else None
            if description is None or description.last_write is None or description.last_write.event != entry.number:
                continue
            if (path := _path(description, position)) is not None:
                is_append = description.has_flag(os.O_APPEND)
                found[path].append(
                    replace(description.last_write, offset=_AT_END) if is_append else description.last_write
                )
    return dict(found)


def _path(description: Description, position: int) -> str | None:
    """Return the path of a file that is not emptied when it is opened again; None: it is, or has none."""
    is_emptied = description.origin.event > position and description.has_flag(os.O_TRUNC)
    node = description.node
    return node.path if node is not None and isinstance(node.path, str) and not is_emptied else None


def _ends(resources: Mapping[int, Resources]) -> dict[str, _Ends]:
    found: dict[str, _Ends] = {}
    for own in resources.values():
        for each in own.opened:
            if isinstance(each, OpenedFile) and isinstance(each.absolute, str):
                ends = found.setdefault(each.absolute, _Ends([], []))
                if isinstance(each.size, int):
                    ends.sizes.append(each.size)
                if each.last_write is not None:
                    ends.last_writes.append(each.last_write)
    return found


def _leftover(path: str, ends: _Ends | None, writes: Sequence[Sequence[LastFileWrite]]) -> Leftover | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None  # the plan reports it, if it is open
    try:
        found = os.fstat(fd).st_size
        size = _end_in_line(fd, found, ends, writes)
        if size is None or not size < found or not _are_all(fd, size, found, writes):
            return None
        return Leftover(path, size, found)
    except OSError:
        return None  # it is a directory now, or a fifo
    finally:
        os.close(fd)


def _end_in_line(fd: int, found: int, ends: _Ends | None, writes: Sequence[Sequence[LastFileWrite]]) -> int | None:
    """Return where a file ended in the line; None: nothing shows it."""
    if ends is not None and ends.sizes:
        return max(ends.sizes)
    size = found - sum(each.length for own in writes for each in own)
    if ends is None:  # it was opened later
        return min(
            (each.offset for own in writes for each in own if isinstance(each.offset, int)), default=max(size, 0)
        )
    is_end = not ends.last_writes or any(ends_with(fd, size, each) for each in ends.last_writes)
    return size if size >= 0 and is_end else None


def _are_all(fd: int, start: int, end: int, writes: Sequence[Sequence[LastFileWrite]]) -> bool:
    """Whether the bytes of a file from `start` to `end` are all writes, those of each process in their order."""
    if sum(each.length for own in writes for each in own) != end - start:
        return False
    waiting, seen = [(start, (0,) * len(writes))], set[tuple[int, ...]]()
    while waiting:
        position, counts = waiting.pop()
        if all(count == len(own) for count, own in zip(counts, writes, strict=True)):
            if position == end:
                return True
            continue
        for index, write in _next(writes, counts):
            following = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
            if following not in seen and _is_at(fd, position, write):
                seen.add(following)
                waiting.append((position + write.length, following))
    return False


def _next(writes: Sequence[Sequence[LastFileWrite]], counts: Sequence[int]) -> Iterator[tuple[int, LastFileWrite]]:
    for index, (count, own) in enumerate(zip(counts, writes, strict=True)):
        if count < len(own):
            yield index, own[count]


def _is_at(fd: int, position: int, write: LastFileWrite) -> bool:
    is_place = not isinstance(write.offset, int) or write.offset == position
    return is_place and write.digest is not None and output_digest(os.pread(fd, write.length, position)) == write.digest
