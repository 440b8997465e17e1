"""Follow what calls do to descriptors as numbers, to locks of files, child processes, timers and signals."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.events.values import StructSequence
from replaydbg.resources.descriptions import Description, status_flags
from replaydbg.resources.event_values import argument, error_number, first, integer, items, number_of, whole
from replaydbg.resources.kinds import ChildProcess, SignalAction, Unknown
from replaydbg.resources.locked_ranges import ENDLESS, LockedRange
from replaydbg.resources.process_state import ProcessState, TimerFacts

_STANDARD = 3
"""The descriptors of the standard streams are below: their file objects leave them open when they are closed."""
_FLOCK = struct.Struct("@hhqqi4x")
"""`struct flock` on 64-bit Linux: type, whence, start, length, process."""
_LOCKS = {linux.F_SETLK: "process", linux.F_SETLKW: "process", linux.F_OFD_SETLK: "ofd", linux.F_OFD_SETLKW: "ofd"}
_ITIMERS = {0: "real", 1: "virtual", 2: "prof"}
SIGNAL_OF_TIMER = {"real": linux.SIGALRM, "virtual": linux.SIGVTALRM, "prof": linux.SIGPROF}


# ---- numbers ----


def _close(to: ProcessState, event: Event) -> None:
    to.close(number_of(argument(event, 0)), event)


def _close_failed(to: ProcessState, event: Event) -> None:
    """Linux closes a descriptor even if writing back fails (close(2))."""
    if error_number(event) not in (0, linux.EBADF):
        _close(to, event)


def _close_file(to: ProcessState, event: Event) -> None:
    number = number_of(argument(event, 0))
    facts = to.numbers.facts(number)
    if number < _STANDARD or facts is None:
        return
    if not facts.has_file_object:
        to.close(number, event)
        return
    if facts.description.node is not None and len(facts.description.numbers) > 1:
        to.locks.closed(facts.description.node)
    to.numbers.drop_perhaps(number)


def _close_range(to: ProcessState, event: Event) -> None:
    low, high = integer(argument(event, 0)), integer(argument(event, 1))
    for number in [each for each in to.numbers if low <= each < high]:
        to.release(number)


def _copy(to: ProcessState, event: Event, number: int, *, close_on_exec: bool, is_lowest: bool) -> None:
    source = to.used(number_of(argument(event, 0, "fd")), event)
    if source is not None and number != number_of(argument(event, 0, "fd")):
        origin = to.origin(event)
        if not is_lowest:
            to.release(number)  # `dup2` closes it
        to.numbers.opened(number, source, origin, close_on_exec=close_on_exec, is_lowest=is_lowest)


def _dup(to: ProcessState, event: Event) -> None:
    _copy(to, event, number_of(event.outcome), close_on_exec=True, is_lowest=True)


def _dup2(to: ProcessState, event: Event) -> None:
    inheritable = bool(argument(event, 2, "inheritable", True))
    number = number_of(argument(event, 1, "fd2"))
    _copy(to, event, number, close_on_exec=not inheritable, is_lowest=False)


def _set_inheritable(to: ProcessState, event: Event) -> None:
    _set_close_on_exec(to, event, not argument(event, 1))


def _set_close_on_exec(to: ProcessState, event: Event, value: bool) -> None:
    number = number_of(argument(event, 0))
    to.used(number, event)
    if (facts := to.numbers.facts(number)) is not None:
        facts.close_on_exec = value


def _set_blocking(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    if description is not None and isinstance(description.flags, int):
        blocking = bool(argument(event, 1))
        description.flags = description.flags & ~linux.O_NONBLOCK | (0 if blocking else linux.O_NONBLOCK)
        description.socket.is_non_blocking = not blocking


def _fcntl(to: ProcessState, event: Event) -> None:
    command, value = argument(event, 1), argument(event, 2, default=0)
    description = to.used(number_of(argument(event, 0)), event)
    if description is None or not isinstance(command, int):
        return
    if command in (linux.F_DUPFD, linux.F_DUPFD_CLOEXEC):
        number = number_of(event.outcome)
        is_lowest = integer(value) == 0
        _copy(to, event, number, close_on_exec=command == linux.F_DUPFD_CLOEXEC, is_lowest=is_lowest)
    elif command == linux.F_SETFD:
        _set_close_on_exec(to, event, bool(integer(value) & linux.FD_CLOEXEC))
    elif command == linux.F_GETFL and (flags := whole(event.outcome)) is not None:
        _has_flags(description, flags, to)
    elif command == linux.F_SETFL:
        changeable = linux.O_APPEND | linux.O_ASYNC | to.open_flags.direct | linux.O_NOATIME | linux.O_NONBLOCK
        old = description.flags if isinstance(description.flags, int) else None
        if old is not None:
            _has_flags(description, old & ~changeable | integer(value) & changeable, to)
    elif command in _LOCKS and isinstance(value, bytes) and len(value) == _FLOCK.size:
        kind, whence, start, length, _ = _FLOCK.unpack(value)
        _lock_range(to, event, description, kind, (whence, start, length), is_ofd=_LOCKS[command] == "ofd")


def _has_flags(description: Description, flags: int, to: ProcessState) -> None:
    description.flags = status_flags(flags, to.open_flags)
    description.socket.is_non_blocking = bool(flags & linux.O_NONBLOCK)


# ---- locks ----


def _flock(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    operation = integer(argument(event, 1))
    if description is None:
        return
    if operation & linux.LOCK_UN:
        to.flocks.pop(description, None)
    else:
        to.flocks[description] = bool(operation & linux.LOCK_EX), to.origin(event)


def _lockf(to: ProcessState, event: Event) -> None:
    """`fcntl.lockf(fd, command, length, start, whence)`."""
    description = to.used(number_of(argument(event, 0)), event)
    operation = integer(argument(event, 1))
    kind = linux.F_UNLCK if operation & linux.LOCK_UN else linux.F_WRLCK if operation & linux.LOCK_EX else linux.F_RDLCK
    where = integer(argument(event, 4)), integer(argument(event, 3)), integer(argument(event, 2))
    if description is not None:
        _lock_range(to, event, description, kind, where, is_ofd=False)


def _posix_lockf(to: ProcessState, event: Event) -> None:
    """`os.lockf(fd, command, length)`, from the current offset."""
    description = to.used(number_of(argument(event, 0)), event)
    command, length = integer(argument(event, 1)), integer(argument(event, 2))
    if description is not None and command != linux.F_TEST:
        kind = linux.F_UNLCK if command == linux.F_ULOCK else linux.F_WRLCK
        _lock_range(to, event, description, kind, (os.SEEK_CUR, 0, length), is_ofd=False)


def _lock_range(
    to: ProcessState,
    event: Event,
    description: Description,
    kind: int,
    where: tuple[int, int, int],
    *,
    is_ofd: bool,
) -> None:
    """Lock or unlock a range, given by whence, start and length as in `struct flock`."""
    node = description.node
    if node is None:
        return
    whence, start, length = where
    base: int | Unknown = 0
    if whence == os.SEEK_CUR:
        base = description.offset
    elif whence == os.SEEK_END:
        base = node.size
    begin = start + (base if isinstance(base, int) else 0)
    end = begin + length if length else ENDLESS
    begin, end = min(begin, end), max(begin, end)
    holder = description if is_ofd else None
    if kind == linux.F_UNLCK:
        to.locks.unlock(node, begin, end, holder)
    else:
        is_exclusive = kind == linux.F_WRLCK
        to.locks.lock(LockedRange(begin, end, is_exclusive, node, holder, description, to.origin(event)))


# ---- children ----


def _texts(value: object) -> tuple[str, ...]:
    return tuple(os.fsdecode(each) for each in items(value) if isinstance(each, str | bytes))


def _started(to: ProcessState, event: Event, pid: object, command: tuple[str, ...], given: Iterable[int]) -> None:
    pid = number_of(pid)
    if pid <= 0:
        return
    to.children.pop(pid, None)  # a process id can be used again
    to.children[pid] = ChildProcess(pid, command, False, None, to.origin(event))
    for number in given:
        if (description := to.numbers.get(number)) is not None:
            description.children.add(pid)


def _fork(to: ProcessState, event: Event) -> None:
    pid = event.outcome if isinstance(event.outcome, int) else first(event.outcome)
    if event.gate == "posix.forkpty" and pid != 0:
        made = Description("terminal", to.origin(event), linux.O_RDWR, can_seek=False, side="master")
        to.opened(number_of((*items(event.outcome), None, None)[1]), made, event)
    if pid == 0:
        _became_child(to)
    else:
        _started(to, event, pid, (), list(to.numbers))


def _became_child(to: ProcessState) -> None:
    """In the recording of a forked child, what follows is its own: see fork(2) for what it does not have."""
    to.children.clear()
    to.timers.clear()
    to.locks.forked()
    shared = Unknown("the parent process has the same semaphore")
    to.semaphores = {name: replace(each, value=shared, is_inherited=True) for name, each in to.semaphores.items()}
    for description in to.open:
        description.children.clear()
        if isinstance(description.offset, int):
            description.offset = Unknown("the parent process has the same open file")


def _inheritable(to: ProcessState) -> set[int]:
    found = {number: to.numbers.facts(number) for number in to.numbers}
    return {number for number, facts in found.items() if facts is not None and facts.close_on_exec is not True}


def _fork_exec(to: ProcessState, event: Event) -> None:
    """The arguments of `_posixsubprocess.fork_exec`: the command, and which descriptors the child gets."""
    parts = event.arguments or ()
    closes_others = bool(argument(event, 2))
    passed = {each for each in items(argument(event, 3)) if isinstance(each, int)}
    streams = {number_of(parts[index]) for index in (6, 9, 11) if index < len(parts)}
    given = _inheritable(to)
    if closes_others:
        given &= {0, 1, 2}
    _started(to, event, event.outcome, _texts(argument(event, 0)), given | passed | streams)


def _spawn(to: ProcessState, event: Event) -> None:
    command = _texts(argument(event, 1, "argv")) or _texts([argument(event, 0, "path")])
    copied = {number_of(items(each)[1]) for each in items(argument(event, 9, "file_actions")) if len(items(each)) == 3}
    _started(to, event, event.outcome, command, _inheritable(to) | copied)


def _waited(to: ProcessState, event: Event) -> None:
    pid, status = (whole(each) for each in (*items(event.outcome), None, None)[:2])
    if pid is None or status is None or not 0 <= status < _MOST_STATUS:
        return
    if (ended := linux.exit_status(status)) is not None:
        _reaped(to, pid, ended)


_MOST_STATUS = 1 << 16


def _waited_id(to: ProcessState, event: Event) -> None:
    found, options = event.outcome, integer(argument(event, 2))
    if isinstance(found, StructSequence) and not options & linux.WNOWAIT and len(found.values) >= 5:
        pid, _, _, status, code = found.values[:5]
        ended = code in (linux.CLD_EXITED, linux.CLD_KILLED, linux.CLD_DUMPED)
        if ended and isinstance(pid, int) and (number := whole(status)) is not None:
            _reaped(to, pid, number if code == linux.CLD_EXITED else -number)


def _reaped(to: ProcessState, pid: int, code: int | None) -> None:
    child = to.children.get(pid)
    if child is None:
        return
    to.children[pid] = replace(child, is_reaped=True, exit_code=code)
    for description in to.open:
        if pid in description.children:
            description.children.discard(pid)
            description.offset = _MOVED_BY_CHILD
            if description.node is not None:
                description.node.size = _WRITTEN_BY_CHILD


_MOVED_BY_CHILD = Unknown("a child process had the same open file, and can have moved the offset")


_WRITTEN_BY_CHILD = Unknown("a child process had the file open, and can have changed its size")


# ---- timers and signals ----

_LONGEST = 1 << 40
"""More seconds are set by no program."""


def _set_timer(to: ProcessState, event: Event, kind: str, seconds: object, interval: object) -> None:
    to.timers.pop(kind, None)
    if isinstance(seconds, int | float) and 0 < seconds < _LONGEST:
        every = float(interval) if isinstance(interval, int | float) and 0 < interval < _LONGEST else 0.0
        to.timers[kind] = TimerFacts(kind, float(seconds), every, event.time_ns, to.origin(event))


def _alarm(to: ProcessState, event: Event) -> None:
    _set_timer(to, event, "real", argument(event, 0), 0)


def _itimer(to: ProcessState, event: Event) -> None:
    kind = _ITIMERS.get(integer(argument(event, 0), -1), "")
    if kind:
        _set_timer(to, event, kind, argument(event, 1), argument(event, 2, default=0))


def end_fired_timers(to: ProcessState, sent: int) -> None:
    """Follow the signals that were handled before an event: those that nobody has sent are timers'.

    `sent` is the signal that the event sends, maybe to the process itself; 0: none. The time of an event does not show
    whether a timer was due: the log has it for each 256th only.
    """
    for number in to.handled:
        if number == sent:  # it was handled inside the call that sends it
            sent = 0
        elif to.sent.get(number):
            to.sent[number] -= 1
        else:
            for kind, timer in list(to.timers.items()):
                if SIGNAL_OF_TIMER[kind] == number and not timer.interval:
                    del to.timers[kind]
    to.handled.clear()
    if sent in SIGNAL_OF_TIMER.values():
        to.sent[sent] = to.sent.get(sent, 0) + 1


def sent_signal(event: Event) -> int:
    """Return the signal that an event sends, maybe to the process itself; 0: none."""
    place = SENDS.get(event.gate)
    return integer(argument(event, place)) if place is not None and not event.raised else 0


SENDS = {"posix.kill": 1, "posix.killpg": 1, "_signal.raise_signal": 0, "_signal.pthread_kill": 1}
"""Calls that send signals, and which of their arguments is the signal."""


def _signal(to: ProcessState, event: Event) -> None:
    number, action = integer(argument(event, 0)), argument(event, 1)
    name = linux.SIGNALS.get(number, f"signal {number}")
    what = {0: "default", 1: "ignore"}.get(action, "function") if isinstance(action, int) else "function"
    to.signals[number] = SignalAction(number, name, what, to.origin(event))


def _wakeup(to: ProcessState, event: Event) -> None:
    number = number_of(argument(event, 0))
    to.wakeup = number if number >= 0 else None


PROCESS_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = {
    **dict.fromkeys(("posix.close", "_socket.close", "_socket.socket.close"), _close),
    "_io.FileIO.close": _close_file,
    "posix.closerange": _close_range,
    **dict.fromkeys(("posix.dup", "_socket.dup"), _dup),
    "posix.dup2": _dup2,
    "posix.set_inheritable": _set_inheritable,
    "posix.set_blocking": _set_blocking,
    "fcntl.fcntl": _fcntl,
    "fcntl.flock": _flock,
    "fcntl.lockf": _lockf,
    "posix.lockf": _posix_lockf,
    **dict.fromkeys(("posix.fork", "posix.forkpty"), _fork),
    "_posixsubprocess.fork_exec": _fork_exec,
    **dict.fromkeys(("posix.posix_spawn", "posix.posix_spawnp"), _spawn),
    **dict.fromkeys(("posix.wait", "posix.waitpid", "posix.wait3", "posix.wait4"), _waited),
    "posix.waitid": _waited_id,
    "_signal.alarm": _alarm,
    "_signal.setitimer": _itimer,
    "_signal.signal": _signal,
    "_signal.set_wakeup_fd": _wakeup,
}
"""The effects of calls that returned, by gate."""

FAILED_PROCESS_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = dict.fromkeys(
    ("posix.close", "_socket.close", "_socket.socket.close", "_io.FileIO.close"), _close_failed
)
"""The effects of calls that raised."""
