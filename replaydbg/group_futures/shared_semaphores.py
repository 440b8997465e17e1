"""The values of multiprocessing's semaphores and locks in a cut: how often each was acquired and released by then."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from replaydbg.errors import NoFutures
from replaydbg.events.records import Event
from replaydbg.group_futures.turn_page import MOST_SEMAPHORES
from replaydbg.log.reader import open_recording
from replaydbg.log.transfers import RECEIVES
from replaydbg.recovery.recovery_line import RecoveryLine
from replaydbg.resources.event_values import integer
from replaydbg.store.directory import member_path

_MADE = "_multiprocessing.SemLock.__new__"
_RECURSIVE = 0
"""The first argument for a lock that its owner can acquire again."""


def shared_semaphores(line: RecoveryLine) -> list[tuple[bytes, int]]:
    """Return the name of each semaphore that any process has made by then, with how often it can be acquired.

    Raises NoFutures.
    """
    used = _used(line)
    found = {}
    for name, kind, value in _made(line):
        held = used.get(name, Counter())
        left = int(not any(each > 0 for each in held.values())) if kind == _RECURSIVE else value - sum(held.values())
        found[name] = max(left, 0)
    if len(found) > MOST_SEMAPHORES:
        raise NoFutures(line.name, f"it has {len(found):,} semaphores, and {MOST_SEMAPHORES} are the most")
    return [(name.encode(), value) for name, value in found.items()]


def _made(line: RecoveryLine) -> Iterator[tuple[str, int, int]]:
    """Yield the name, kind and first value of each semaphore."""
    for member in line.members.values():
        with open_recording(member_path(line.directory, member.number)) as recording:
            if not any(gate.name == _MADE for gate in recording.header.gates):
                continue
            for entry in recording.events(last=member.position):
                if not isinstance(entry, Event) or entry.gate != _MADE or entry.raised:
                    continue
                kind, value, _, name, *_ = entry.arguments or (0, 0, 0, "")
                if isinstance(name, str) and name.isascii():
                    yield name, integer(kind), integer(value)


def _used(line: RecoveryLine) -> dict[str, Counter[int]]:
    """Return by name how much more often each process has acquired a semaphore than released it."""
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for number, member in line.members.items():
        opened = line.opened.member(number)
        columns = opened.transfers
        for event, endpoint, flags in zip(columns.event, columns.endpoint, columns.flags, strict=True):
            used = opened.endpoints[endpoint - 1] if endpoint else None
            if used is not None and used.kind == "semaphore" and 0 < event <= member.position:
                found[used.own][number] += 1 if flags & RECEIVES else -1
    return found
