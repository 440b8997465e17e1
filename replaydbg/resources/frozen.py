"""Turn the state of a process into `Resources`."""

from __future__ import annotations

import os
import stat
from typing import TypeVar

from replaydbg.events import linux
from replaydbg.resources.descriptions import Description
from replaydbg.resources.kinds import (
    FileLock,
    LastFileRead,
    LastFileWrite,
    OpenedDirectory,
    OpenedEpoll,
    OpenedEventFd,
    OpenedFile,
    OpenedMemory,
    OpenedOther,
    OpenedPidFd,
    OpenedPipe,
    OpenedSocket,
    OpenedTerminal,
    OpenedTimerFd,
    OpenResource,
    ProcessTimer,
    Resources,
    RunningThread,
    SqliteDatabase,
    Unknown,
    Watched,
)
from replaydbg.resources.locked_ranges import ENDLESS
from replaydbg.resources.memory_events import LOCK_NAMES
from replaydbg.resources.process_events import SIGNAL_OF_TIMER
from replaydbg.resources.process_state import INHERITED, DatabaseFacts, ProcessState, TimerFacts

_SPECIAL = ("/dev/", "/proc/", "/sys/")
_OTHERS = {
    "inherited descriptor": "inherited, and no call showed what it is",
    "passed descriptor": "it came in a message, and no call showed what it is",
}
_UNSEEN_REASON = "no recorded call opened it: a C library did, or it is of a kind without a gate (inotify, signalfd)"


def frozen(state: ProcessState, threads: tuple[RunningThread, ...], event: int, time_ns: int) -> Resources:
    """Return the state as a value."""
    opened = sorted((each for each in state.open if each.numbers), key=lambda each: min(each.numbers))
    return Resources(
        event=event,
        cwd=state.names.cwd,
        opened=tuple(_opened(state, each) for each in opened),
        mappings=tuple(state.live_mappings()),
        databases=tuple(_database(each, state) for each in state.databases if each.is_database),
        locks=_locks(state),
        threads=threads,
        timers=tuple(_timer(each, time_ns) for each in state.timers.values() if not _has_fired(each, state)),
        signals=tuple(state.signals[number] for number in sorted(state.signals)),
        wakeup=state.wakeup,
        children=tuple(state.children.values()),
        semaphores=tuple(state.semaphores.values()),
        tls=tuple(state.tls),
        tls_loads=tuple(state.tls_loads),
        standard_input=None if state.standard_input is None else state.standard_input[1].frozen(),
        open_flags=state.open_flags,
    )


def _opened(state: ProcessState, one: Description) -> OpenResource:
    handle = one.handle(state.numbers)
    if one.kind == "file" and one.node is not None:
        return _file(state, one)
    if one.kind == "directory" and one.node is not None:
        return OpenedDirectory(handle, one.path, one.node.path)
    if one.kind == "pipe":
        path = one.node.path if one.node is not None and isinstance(one.node.path, str) else None
        return OpenedPipe(handle, one.side or "both", path, _other_end(state, one) if path is None else ())
    if one.kind == "socket":
        return _socket(state, one)
    if one.kind == "terminal":
        path = one.node.path if one.node is not None and isinstance(one.node.path, str) else None
        return OpenedTerminal(handle, one.side if one.side in ("master", "slave") else None, path)
    if one.kind == "epoll":
        watched = one.watched
        found = watched if isinstance(watched, Unknown) else tuple(Watched(n, watched[n]) for n in sorted(watched))
        return OpenedEpoll(handle, found)
    if one.kind == "eventfd":
        return OpenedEventFd(handle, one.value, one.side == "semaphore")
    if one.kind == "timerfd":
        clock = one.value if isinstance(one.value, int) else 0
        return OpenedTimerFd(handle, clock, one.settings, one.set_by)
    if one.kind == "pidfd":
        return OpenedPidFd(handle, one.value if isinstance(one.value, int) else 0)
    if one.kind == "memory" and one.node is not None:
        name = one.path if isinstance(one.path, str) else os.fsdecode(one.path)
        size, offset = one.node.size, _offset(one)
        return OpenedMemory(handle, name, one.side == "shared", one.is_unlinked, offset, size, one.last_write)
    return OpenedOther(handle, one.kind, _OTHERS.get(one.kind, _UNSEEN_REASON))


def _offset(one: Description) -> int | Unknown:
    if one.children:
        return Unknown(f"child process {min(one.children)} has the same open file, and can move the offset")
    return one.offset


def _file(state: ProcessState, one: Description) -> OpenedFile:
    assert one.node is not None
    regular = _is_regular(one)
    return OpenedFile(
        handle=one.handle(state.numbers),
        path=one.path,
        absolute=one.node.path,
        is_regular=regular,
        offset=_offset(one),
        size=one.node.size,
        is_deleted=one.node.is_deleted,
        last_write=_unless_changed(one, one.last_write),
        last_read=_unless_changed(one, one.last_read),
    )


_Last = TypeVar("_Last", LastFileRead, LastFileWrite)


def _unless_changed(one: Description, last: _Last | None) -> _Last | None:
    """Return what was read or written last, unless the process can have changed the file since."""
    assert one.node is not None
    return None if last is None or one.node.has_hidden_stores or last.event < one.node.changed else last


def _is_regular(one: Description) -> bool | Unknown:
    assert one.node is not None
    if one.node.mode is not None:
        return stat.S_ISREG(one.node.mode)
    path = one.node.path
    if isinstance(path, str) and path.startswith(_SPECIAL):
        return False
    if one.can_seek and isinstance(path, str):
        return True
    return Unknown("no call showed what kind of file it is")


def _other_end(state: ProcessState, one: Description) -> tuple[int, ...]:
    ends = (each for each in state.open if each.origin == one.origin and each is not one and each.kind == one.kind)
    return tuple(sorted(number for each in ends for number in each.numbers)) if one.origin.event else ()


def _socket(state: ProcessState, one: Description) -> OpenedSocket:
    facts = one.socket
    flags = one.flags
    non_blocking = facts.is_non_blocking
    return OpenedSocket(
        handle=one.handle(state.numbers),
        family=facts.family,
        type=facts.type,
        protocol=facts.protocol,
        state=facts.state,
        bound=facts.bound,
        backlog=facts.backlog,
        peer=facts.peer,
        is_accepted=facts.is_accepted,
        pair=_other_end(state, one) if one.side in ("0", "1") else None,
        shut=facts.shut,
        is_non_blocking=True if isinstance(flags, int) and flags & linux.O_NONBLOCK else non_blocking,
        options=tuple(facts.options.values()),
        tls=facts.tls,
    )


def _database(facts: DatabaseFacts, state: ProcessState) -> SqliteDatabase:
    name = facts.path.rpartition("/")[2]
    several = sum(each.path.rpartition("/")[2] == name for each in state.databases) > 1
    files = [each.path for each in state.databases if facts.path and each.path.startswith(facts.path + "-")]
    if facts.has_index:
        files.append(facts.path + "-shm")
    if several:
        unknown = Unknown("several open databases have this name, and the log does not show which one a call is of")
        return SqliteDatabase(facts.origin, facts.path, unknown, unknown, tuple(files))
    uses_log = facts.has_index
    writes = facts.writes_log if uses_log else facts.lock >= LOCK_NAMES.index("reserved")
    reads = facts.reads_log > 0 if uses_log else facts.lock > 0
    transaction = "write" if writes else "read" if reads else "none"
    lock = LOCK_NAMES[min(facts.lock, len(LOCK_NAMES) - 1)]
    return SqliteDatabase(facts.origin, facts.path, lock, transaction, tuple(files))


def _locks(state: ProcessState) -> tuple[FileLock, ...]:
    found = []
    for one, (is_exclusive, origin) in state.flocks.items():
        if not one.numbers:
            continue
        path = one.node.path if one.node is not None else INHERITED
        found.append(FileLock("flock", is_exclusive, path, 0, 0, tuple(sorted(one.numbers)), origin))
    for each in state.locks.all:
        length = 0 if each.end == ENDLESS else each.end - each.first
        numbers = tuple(sorted(n for d in state.open if d.node is each.node for n in d.numbers))
        through = tuple(sorted(each.through.numbers)) or numbers
        kind = "ofd" if each.holder is not None else "lockf"
        found.append(FileLock(kind, each.is_exclusive, each.node.path, each.first, length, through, each.origin))
    return tuple(found)


def _has_fired(timer: TimerFacts, state: ProcessState) -> bool:
    """Whether the last thing in the log is a signal that can be the timer's."""
    number = SIGNAL_OF_TIMER[timer.kind]
    return not timer.interval and state.handled.count(number) > state.sent.get(number, 0)


def _timer(timer: TimerFacts, now_ns: int) -> ProcessTimer:
    remaining: float | Unknown = Unknown("it counts CPU time, which is not recorded")
    if timer.kind == "real":
        passed = max(0.0, (now_ns - timer.set_at) / 1e9)
        remaining = max(0.0, timer.seconds - passed)
        if passed > timer.seconds and timer.interval:
            remaining = timer.interval - (passed - timer.seconds) % timer.interval
    return ProcessTimer(timer.kind, timer.seconds, timer.interval, remaining, timer.origin)
