"""Compare the kernel's answers to a recorded program about its own descriptors with the table."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.log.reader import Recording
from replaydbg.resources.follow import resources_at
from replaydbg.resources.kinds import OpenedDirectory, OpenedFile, OpenedMemory, OpenResource

_CLOSE_ON_EXEC = 0o2000000
_LARGE_FILE = linux.open_flags(sysconfig.get_config_var("SOABI")).large_file
_DELETED = " (deleted)"
_OWN = 1000
"""The recorder's own descriptors are above: it moves them as high as it may."""


@dataclass(frozen=True, slots=True)
class KernelDescriptor:
    """A line of /proc/self/fd with its fdinfo."""

    target: str
    offset: int
    flags: int


def looks(recording: Recording) -> Iterator[tuple[int, dict[int, KernelDescriptor]]]:
    """Yield each list of descriptors that the program read, with the event before which it was true."""
    at, found, target, number = 0, dict[int, KernelDescriptor](), "", -1
    for entry in recording.events(controls=False):
        assert isinstance(entry, Event)
        first = (entry.arguments or (None,))[0]
        if entry.gate == "posix.listdir" and first == "/proc/self/fd":
            if at:
                yield at, found
            at, found = entry.number, {}
        elif entry.gate == "posix.readlink" and not entry.raised:
            target, number = str(entry.outcome), int(str(first).rpartition("/")[2])
        elif entry.gate == "_io.FileIO.read" and isinstance(entry.outcome, bytes) and entry.outcome.startswith(b"pos:"):
            lines = dict(line.split(b":\t", 1) for line in bytes(entry.outcome).split(b"\n")[:2])
            found[number] = KernelDescriptor(target, int(lines[b"pos"]), int(lines[b"flags"], 8))
    if at:
        yield at, found


def differences(recording: Recording) -> Iterator[str]:
    """Yield a sentence for each descriptor of which the table and the kernel say something else."""
    for event, kernel in looks(recording):
        table = resources_at(recording, event - 1).by_number()
        for number in sorted({*kernel, *table}):
            problem = _difference(number, table.get(number), kernel.get(number))
            if problem:
                ours = table.get(number)
                yield f"before event {event}, descriptor {number}: {problem} ({ours}, {kernel.get(number)})"


def _difference(number: int, ours: OpenResource | None, kernel: KernelDescriptor | None) -> str:
    if ours is None:
        return "" if number > _OWN else "it is missing"
    one = next(each for each in ours.handle.descriptors if each.number == number)
    if one.doubt:
        return ""
    if kernel is None:
        return "it is closed"
    flags = ours.handle.flags
    if isinstance(flags, int) and flags != kernel.flags & ~_CLOSE_ON_EXEC & ~_LARGE_FILE:
        return f"its flags are {flags:o}"
    if isinstance(one.close_on_exec, bool) and one.close_on_exec != bool(kernel.flags & _CLOSE_ON_EXEC):
        return f"close_on_exec is {one.close_on_exec}"
    if isinstance(ours, OpenedFile | OpenedMemory) and isinstance(ours.offset, int) and ours.offset != kernel.offset:
        return f"its offset is {ours.offset}"
    if isinstance(ours, OpenedFile | OpenedDirectory) and isinstance(ours.absolute, str):
        is_deleted = isinstance(ours, OpenedFile) and ours.is_deleted
        # A file without a name has the directory as its path here, and a made-up name there.
        if not kernel.target.startswith("/tmp/#") and is_deleted != kernel.target.endswith(_DELETED):
            return f"is_deleted is {is_deleted}"
        if not is_deleted and ours.absolute != kernel.target:
            return f"its path is {ours.absolute}"
    return ""
