"""Read from the event log of a process for what each thread waits at any position."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from replaydbg.distributed.descriptors import ChannelEnd, DescriptorTable
from replaydbg.distributed.eventfd_counts import EventfdCounts
from replaydbg.distributed.lock_ends import LockCall
from replaydbg.distributed.stream_calls import READS_ALL, RECEIVES, SENDS, argument, connects, meets_end
from replaydbg.events.records import Control, ControlKind, Entry, Event, SwitchReason

RECEIVE, SEND, POLL, CHILD, SEMAPHORE, FILE_LOCK, EVENTFD_WRITE, OUTSIDE = KINDS = (
    "receive",
    "send",
    "poll",
    "child",
    "semaphore",
    "file-lock",
    "eventfd",
    "outside",
)
"""A call can wait for: bytes, or the end of a stream; room for bytes; any of several descriptors; the end of a child
process; a semaphore; a lock of a file; a write to an eventfd; something that no recorded process needs to do.
"""

_POLLS = {"select.epoll.poll": 0, "select.poll().poll": 0, "select.select": 3}
"""With the index of the argument that is their timeout."""
_CHILDREN = {"posix.wait": None, "posix.waitpid": 1, "posix.wait3": 0, "posix.wait4": 1, "posix.waitid": 2}
"""With the index of the argument that has their options."""
_ANY_CHILD = {"posix.wait", "posix.wait3"}
_SEMAPHORES = {"_multiprocessing.SemLock.acquire", "_multiprocessing.SemLock.__enter__"}
_FILE_LOCKS = {"fcntl.flock", "fcntl.lockf", "fcntl.fcntl"}
_WAITING_COMMANDS = (7, 38)
"""F_SETLKW and F_OFD_SETLKW, commands of fcntl()."""
_CLOSES_SEVERAL = "posix.closerange"
_PROCESS_COMMANDS = (6, 7)
"""F_SETLK and F_SETLKW."""
_OUTSIDE = {
    "_socket.socket._accept",
    "_signal.pause",
    "_signal.sigwait",
    "_signal.sigwaitinfo",
    "builtins.input",
}
_WNOHANG, _LOCK_NB = 1, 4
_SIGCHLD = 17
_ACCEPT, _SHUTDOWN = "_socket.socket._accept", "_socket.socket.shutdown"
_SHUT_RD, _SHUT_WR = 0, 1
_CONNECTS = ("_socket.socket.connect", "_socket.socket.connect_ex")


class Wait(NamedTuple):
    """The wait of a call."""

    kind: str
    """One of KINDS."""
    ends: tuple[ChannelEnd | None, ...] = ()
    """The descriptors: one of a receive or a send, any of several of a poll; None: not known what it is."""
    child: int = 0
    """The process id of a child; 0: any child."""
    is_to_the_end: bool = False
    """Whether a receive waits for the end of the stream, so that all others have to close it."""
    semaphore: int = 0
    """The number of the semaphore's endpoint in this process; 0: not known."""
    lock: int = 0
    """That of the endpoint of a lock of a file; 0: not known."""


class LaneWait(NamedTuple):
    """A thread of a process at a position."""

    lane: int
    waits_for_lock: bool
    """Whether it waits for a lock of its process."""
    event: int
    """The event of the call in which it waits, or which it makes next; 0: the call never ended."""
    wait: Wait | None
    """None: it can go on, or it is not known what it waits for."""
    is_open: bool = False
    """Whether it is in a call that never ended, or had not called again when its recording ended."""


class EndMet(NamedTuple):
    """A call that met the end of a stream, or a broken pipe."""

    event: int
    lane: int
    end: ChannelEnd
    """Its own end."""
    is_broken: bool
    """Whether it could not send."""


class Shutdown(NamedTuple):
    """A call that ended one direction of a stream, or both, without closing the socket."""

    event: int
    lane: int
    of_receiving: bool
    of_sending: bool


class Contact(NamedTuple):
    """A call that connected a socket, or accepted a connection."""

    event: int
    address: object
    """The address of the other side, as Python has it."""


class WaitHistory:
    """The threads of a process, and what each waits for."""

    def __init__(
        self,
        table: DescriptorTable,
        endpoints: Mapping[int, int],
        *,
        gives: Callable[[int], bool] = lambda event: False,
    ) -> None:
        """`endpoints` has the endpoint of each event that used one, and `gives` says at which events one is started."""
        self.table = table
        self._endpoints, self._gives = endpoints, gives
        self.given: dict[int, tuple[dict[int, ChannelEnd], Event]] = {}
        """The descriptors when a process was started, with the event that did it."""
        self.endpoint_of: dict[ChannelEnd, int] = {}
        """The number of the endpoint of each end that was used."""
        self.ends_met: list[EndMet] = []
        """Events that met the end of a stream, or a broken pipe."""
        self.shutdowns: defaultdict[ChannelEnd, list[Shutdown]] = defaultdict(list)
        """For each socket the calls of shutdown()."""
        self.connects: dict[ChannelEnd, int] = {}
        """For each socket after which event of its thread it was first connected."""
        self.connections: dict[ChannelEnd, Contact] = {}
        """For each socket the call that connected it, also one that went on in the background."""
        self.accepts: defaultdict[ChannelEnd, dict[ChannelEnd, Contact]] = defaultdict(dict)
        """For each listening socket the connections that were accepted."""
        self.accepted: dict[ChannelEnd, int] = {}
        """For each accepted connection the event."""
        self.signals: list[tuple[int, int]] = []
        """The handlers of signals that ran: after which event, and the signal's number."""
        self.semaphores: dict[str, int] = {}
        """The values with which it made semaphores, by their names."""
        self.locked: dict[int, LockCall] = {}
        """By event, the calls that acquired or released a lock of a file."""
        self.eventfds = EventfdCounts(table)
        self.has_ended = False
        """Whether its log has the end of the program."""
        self._lanes: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
        """The events of each thread."""
        self._waits: dict[int, Wait] = {}
        """By event."""
        self._timers: list[tuple[int, bool]] = []
        """After which event a timer runs, or none."""
        self._handlers: list[tuple[int, bool]] = []
        """After which event a handler of SIGCHLD is set, or none."""
        self._switches: list[tuple[int, int, SwitchReason | None, int, SwitchReason | None]] = []
        """After which event, the thread that gave way and why, the one that goes on and why it had given way."""
        self._status: dict[int, SwitchReason | None] = {0: None}

    def read(self, entries: Iterable[Entry]) -> None:
        """Read the whole log."""
        for entry in entries:
            if isinstance(entry, Event):
                self._event(entry)
            elif entry.kind is ControlKind.LANE:
                self._switch(entry)
            elif entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
                self._status[entry.number] = SwitchReason.PREEMPTED
                self._switches.append((entry.after, entry.number, SwitchReason.PREEMPTED, -1, None))
            elif entry.kind in (ControlKind.SIGNAL_INSIDE, ControlKind.SIGNAL_BETWEEN) and entry.number:
                self.signals.append((entry.after, entry.number))
            elif entry.kind is ControlKind.END:
                self.has_ended = True

    def at(self, position: int) -> list[LaneWait]:
        """Return the threads at a position of the process, those that live."""
        status: dict[int, SwitchReason | None] = {0: None}
        before: dict[int, SwitchReason | None] = {}
        for after, lane, why, following, had in self._switches:
            if after > position:
                break
            if why is SwitchReason.ENDED:
                status.pop(lane, None)
            else:
                status[lane] = why
            if following >= 0:
                status[following] = None
                before = {following: had} if after == position else {}
        found = [self._lane(lane, why, before, position) for lane, why in sorted(status.items())]
        unknown = [each for each in found if each.is_open]
        if len(unknown) > 1:  # whose is the call that never ended? Switches are recorded when the next thread goes on
            return [each._replace(is_open=False) if each.is_open else each for each in found]
        return found

    def has_timer(self, position: int, branch: int = 0) -> bool:
        """Whether a timer of the process runs at a position (`signal.alarm`, `setitimer`).

        `branch` is the event that forked it: a child has none of its parent's timers.
        """
        at = bisect_right(self._timers, (position, True))
        return at > 0 and self._timers[at - 1][1] and self._timers[at - 1][0] > branch

    def handles_children(self, position: int) -> bool:
        """Whether a function of the program runs when a child ends."""
        at = bisect_right(self._handlers, (position, True))
        return at > 0 and self._handlers[at - 1][1]

    def _lane(
        self,
        lane: int,
        why: SwitchReason | None,
        before: Mapping[int, SwitchReason | None],
        position: int,
    ) -> LaneWait:
        events = self._lanes.get(lane, array("Q"))
        at = bisect_right(events, position)
        event = events[at] if at < len(events) else 0
        if lane in before:  # it goes on here: what did it wait for?
            why = before[lane]
        elif why is None and event == position + 1:
            why = SwitchReason.CROSSING
        if why is SwitchReason.LOCK:
            return LaneWait(lane, True, event, None)
        if why is SwitchReason.CROSSING or (why is None and not event):
            return LaneWait(lane, False, event, self._waits.get(event) if event else None, is_open=not event)
        return LaneWait(lane, False, event, None)

    def _switch(self, entry: Control) -> None:
        following = entry.number or 0
        self._switches.append((entry.after, entry.lane, entry.why, following, self._status.get(following)))
        if entry.why is SwitchReason.ENDED:
            self._status.pop(entry.lane, None)
        else:
            self._status[entry.lane] = entry.why
        self._status[following] = None

    def _event(self, event: Event) -> None:
        number = event.number
        self._lanes[event.lane].append(number)
        endpoint = self._endpoints.get(number)
        if endpoint is not None:
            end = self.table.end_of(argument(event, 0), number)
            if end is not None:
                self.endpoint_of.setdefault(end, endpoint)
        if meets_end(event) and (end := self.table.end_of(argument(event, 0), number)) is not None:
            self.ends_met.append(EndMet(number, event.lane, end, event.raised))
        wait = self._wait(event)
        if wait is not None:
            self._waits[number] = wait
        if event.gate == "_multiprocessing.SemLock.__new__" and not event.raised:
            value, name = argument(event, 1), argument(event, 3)
            if isinstance(value, int) and isinstance(name, str):
                self.semaphores[name] = value
        self._signals(event)
        if self._gives(number):
            self.given[number] = dict(self.table.ends), event
        self._connections(event)
        if event.gate in (*_FILE_LOCKS, _CLOSES_SEVERAL) and number in self._endpoints:
            self.locked[number] = self._lock_call(event)
        self.eventfds.before(event)
        self.table.apply(event)
        self.eventfds.after(event)
        if event.gate == _ACCEPT and not event.raised and (end := self.table.end_of(_first(event.outcome), number)):
            self.accepted[end] = number
            listener, outcome = self.table.end_of(argument(event, 0), number), event.outcome
            if listener is not None:
                address = outcome[1] if isinstance(outcome, tuple) and len(outcome) > 1 else None
                self.accepts[listener][end] = Contact(number, address)

    def _connections(self, event: Event) -> None:
        if event.gate not in (_SHUTDOWN, *_CONNECTS):
            return
        end = self.table.end_of(argument(event, 0), event.number)
        if end is None:
            return
        if event.gate == _SHUTDOWN:
            how = argument(event, 1)
            self.shutdowns[end].append(Shutdown(event.number, event.lane, how != _SHUT_WR, how != _SHUT_RD))
        else:  # it may go on in the background after it has raised
            before = self._lanes[event.lane][-2:-1]
            self.connects.setdefault(end, before[0] if before else 0)
            if connects(event):
                self.connections.setdefault(end, Contact(event.number, argument(event, 1)))

    def _lock_call(self, event: Event) -> LockCall:
        if event.gate == _CLOSES_SEVERAL:
            low, high = argument(event, 0), argument(event, 1)
            if not isinstance(low, int) or not isinstance(high, int):
                return LockCall(frozenset(), is_of_process=False, closes=True)
            closed = (end for number, end in self.table.ends.items() if low <= number < high)
            return LockCall(frozenset(closed), is_of_process=False, closes=True)
        end = self.table.end_of(argument(event, 0), event.number)
        return LockCall(frozenset() if end is None else frozenset((end,)), _is_of_process(event))

    def _signals(self, event: Event) -> None:
        if event.raised:
            return
        first, second = argument(event, 0), argument(event, 1)
        if event.gate == "_signal.alarm":
            self._timers.append((event.number, first != 0))
        elif event.gate == "_signal.setitimer":
            self._timers.append((event.number, second not in (0, 0.0)))
        elif event.gate == "_signal.signal" and first == _SIGCHLD:
            self._handlers.append((event.number, second not in (0, 1)))  # SIG_DFL, SIG_IGN

    def _wait(self, event: Event) -> Wait | None:
        gate = event.gate
        if gate in RECEIVES:
            end = self.table.end_of(argument(event, 0), event.number)
            return Wait(RECEIVE, (end,), is_to_the_end=gate == READS_ALL)
        if gate in SENDS:
            # Of one that ended it is not known whether it waited.
            return Wait(SEND, (self.table.end_of(argument(event, 0), event.number),)) if event.raised else None
        if gate in _POLLS:
            return self._poll(event)
        if gate in _CHILDREN:
            return _child(event)
        if gate in _SEMAPHORES:
            return _semaphore(event, self._endpoints.get(event.number, 0))
        if gate in _FILE_LOCKS:
            end = self.table.end_of(argument(event, 0), event.number)
            return (
                Wait(FILE_LOCK, (end,), lock=self._endpoints.get(event.number, 0)) if _waits_for_lock(event) else None
            )
        return Wait(OUTSIDE) if gate in _OUTSIDE else None

    def _poll(self, event: Event) -> Wait | None:
        timeout = argument(event, _POLLS[event.gate])
        if isinstance(timeout, int | float) and timeout >= 0:
            return None
        table = self.table
        if event.gate == "select.select":
            given = [each for items in (event.arguments or ())[:3] if isinstance(items, list | tuple) for each in items]
            return Wait(POLL, tuple(table.end_of(each, event.number) for each in given))
        if event.gate == "select.epoll.poll":
            return Wait(POLL, self._polled())
        # What is registered with poll() is not recorded: any of its descriptors can be.
        return Wait(POLL, self._all())

    def open_call(self, name: str) -> Wait | None:
        """Return what a call of this name waits for that never ended, and has no timeout."""
        if name == "select.epoll.poll":
            return Wait(POLL, self._polled())
        if name in _POLLS:
            return Wait(POLL, self._all())
        return Wait(FILE_LOCK) if name in _FILE_LOCKS else Wait(OUTSIDE)  # so recordings of earlier versions have locks

    def _polled(self) -> tuple[ChannelEnd | None, ...]:
        return tuple(self.table.ends.get(each) for each in sorted(self.table.polled))

    def _all(self) -> tuple[ChannelEnd | None, ...]:
        """Return all ends that a poll can wait for whose descriptors are not known."""
        return tuple(end for number, end in sorted(self.table.ends.items()) if number > 2)


def _is_of_process(event: Event) -> bool:
    """Whether the lock of a call belongs to the process, not to an open file."""
    return event.gate == "fcntl.lockf" or (event.gate == "fcntl.fcntl" and argument(event, 1) in _PROCESS_COMMANDS)


def _waits_for_lock(event: Event) -> bool:
    options = argument(event, 1)
    if not isinstance(options, int):
        return False
    return options in _WAITING_COMMANDS if event.gate == "fcntl.fcntl" else not options & _LOCK_NB


def _child(event: Event) -> Wait | None:
    index = _CHILDREN[event.gate]
    options = argument(event, index) if index is not None else 0
    if isinstance(options, int) and options & _WNOHANG:
        return None
    named = 0 if event.gate in _ANY_CHILD else argument(event, 1 if event.gate == "posix.waitid" else 0)
    if event.gate == "posix.waitid" and argument(event, 0) != 1:  # P_PID
        named = 0
    return Wait(CHILD, child=named if isinstance(named, int) and named > 0 else 0)


def _semaphore(event: Event, endpoint: int) -> Wait | None:
    block, timeout = argument(event, 0), argument(event, 1)
    if block is False or block == 0 or isinstance(timeout, int | float):
        return None
    return Wait(SEMAPHORE, semaphore=endpoint)


def _first(value: object) -> object:
    return value[0] if isinstance(value, tuple) and value else None
