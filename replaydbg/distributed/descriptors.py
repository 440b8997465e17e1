"""Follow the descriptors of a process through its event log: which ends of pipes and sockets it holds, and how long."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from replaydbg.events.records import Event
from replaydbg.events.values import OpenFile
from replaydbg.log.transfers import MOST_DESCRIPTORS

PIPE, SOCKET, PAIR, FILE, INHERITED = "pipe", "socket", "pair", "file", "inherited"

_STANDARD = 3
"""The descriptors of the standard streams are below: their file objects leave them open when they are closed."""

_SCM_RIGHTS = (1, 1)
"""Level and type of a control message that has descriptors (Linux)."""


class ChannelEnd(NamedTuple):
    """One end of a pipe or a socket, or another open file: what descriptors of several processes can refer to."""

    process: int
    event: int
    """The event that made it; 0: the process had it when it began."""
    side: int
    """Of a pipe: 0 reads, 1 writes; of a pair of sockets: which of both; of an inherited one its descriptor."""
    kind: str
    """PIPE, SOCKET, PAIR (one of a pair of sockets), FILE or INHERITED (not known which)."""


class Held(NamedTuple):
    """From which event on, and before which one, a process holds an end."""

    first: int
    last: int | None
    """None: until it ends."""

    def contains(self, position: int) -> bool:
        """Whether it is held at a position of the process."""
        return self.first <= position and (self.last is None or position < self.last)


class DescriptorTable:
    """The descriptors of a process after each event that it is given, in order."""

    def __init__(self, initial: Mapping[int, ChannelEnd], owner: Callable[[int], int]) -> None:
        """`initial` has the descriptors at the beginning, `owner` the process that an event belongs to."""
        self._owner = owner
        self.ends: dict[int, ChannelEnd] = dict(initial)
        """For each descriptor what it refers to."""
        self.held: defaultdict[ChannelEnd, list[Held]] = defaultdict(list)
        """For each end when it was held."""
        self.perhaps: dict[int, ChannelEnd] = {}
        """Descriptors that a file object for them has closed, unless it was made with `closefd=False`: not recorded."""
        self.perhaps_held: defaultdict[ChannelEnd, list[Held]] = defaultdict(list)
        """For each end when it was held if it was."""
        self.polled: set[int] = set()
        """The descriptors that are registered with any epoll."""
        self._count = Counter(initial.values())
        self._lent: set[int] = set()
        """Descriptors for which a file object was made."""
        for end in self._count:
            self.held[end].append(Held(0, None))

    def end_of(self, value: object, event: int) -> ChannelEnd | None:
        """Return what a descriptor, or a file, of an argument refers to; None: not known."""
        number = descriptor_of(value)
        if number not in self.ends and number in self.perhaps:
            self._open(number, self.perhaps[number], event)  # it is used, so it was not closed
        return self.ends.get(number)

    def apply(self, event: Event) -> None:
        """Follow an event."""
        if event.raised:
            return
        action = _ACTIONS.get(event.gate)
        if action is not None:
            action(self, event)

    def _open(self, number: object, end: ChannelEnd, event: int) -> None:
        if not isinstance(number, int) or not 0 <= number < MOST_DESCRIPTORS:
            return
        self._drop(number, event)
        self.ends[number] = end
        self._count[end] += 1
        if self._count[end] == 1:
            self.held[end].append(Held(event, None))

    def _drop(self, number: int, event: int) -> ChannelEnd | None:
        if (kept := self.perhaps.pop(number, None)) is not None:
            self.perhaps_held[kept][-1] = self.perhaps_held[kept][-1]._replace(last=event)
        end = self.ends.pop(number, None)
        self.polled.discard(number)
        self._lent.discard(number)
        if end is not None:
            self._count[end] -= 1
            if not self._count[end]:
                self.held[end][-1] = self.held[end][-1]._replace(last=event)
        return end

    def _made(self, event: Event, index: int, kind: str) -> ChannelEnd:
        return ChannelEnd(self._owner(event.number), event.number, index, kind)

    # ---- what events do ----

    def _pipe(self, event: Event) -> None:
        for index, number in enumerate(_items(event.outcome)):
            self._open(number, self._made(event, index, PIPE), event.number)

    def _pair(self, event: Event) -> None:
        for index, each in enumerate(_items(event.outcome)):
            self._open(_first(each), self._made(event, index, PAIR), event.number)

    def _socket(self, event: Event) -> None:
        # A new one replaces what the number referred to: the close of an epoll, for example, does not show its number.
        given = _argument(event, 3)
        number = descriptor_of(given if given is not None else _keyword(event, "fileno"))
        is_known = event.gate == _MAKES_SOCKET and self.end_of(number, event.number) is not None
        if not is_known:
            self._open(_first(event.outcome), self._made(event, 0, SOCKET), event.number)

    def _file(self, event: Event) -> None:
        number = event.outcome if isinstance(event.outcome, int) else _first(event.outcome)
        is_lent = event.gate == _MAKES_FILE and isinstance(_argument(event, 0), int)
        if is_lent and self.end_of(number, event.number) is not None:
            self._lent.add(descriptor_of(number))
            return
        self._open(number, self._made(event, 0, FILE), event.number)

    def _copy(self, event: Event) -> None:
        end = self.end_of(_argument(event, 0), event.number)
        number = event.outcome if isinstance(event.outcome, int) else _argument(event, 1)
        self._open(number, end if end is not None else self._made(event, 0, FILE), event.number)

    def _close(self, event: Event) -> None:
        self._drop(descriptor_of(_argument(event, 0)), event.number)

    def _close_file(self, event: Event) -> None:
        number = descriptor_of(_argument(event, 0))
        if number < _STANDARD:
            return
        is_lent = number in self._lent
        end = self._drop(number, event.number)
        if end is not None and is_lent:
            self.perhaps[number] = end
            self.perhaps_held[end].append(Held(event.number, None))

    def _close_range(self, event: Event) -> None:
        low, high = _argument(event, 0), _argument(event, 1)
        if isinstance(low, int) and isinstance(high, int):
            for number in [each for each in self.ends if low <= each < high]:
                self._drop(number, event.number)

    def _passed(self, event: Event) -> None:
        """Descriptors came with a message."""
        for number in passed_descriptors(event):
            self._open(number, self._made(event, number, INHERITED), event.number)

    def _register(self, event: Event) -> None:
        number = descriptor_of(_argument(event, 0))
        if self.end_of(number, event.number) is not None:
            self.polled.add(number)

    def _unregister(self, event: Event) -> None:
        self.polled.discard(descriptor_of(_argument(event, 0)))


_MAKES_FILE, _MAKES_SOCKET = "_io.FileIO.__init__", "_socket.socket.__init__"
_ACTIONS: dict[str, Callable[[DescriptorTable, Event], None]] = {
    **dict.fromkeys(("posix.pipe", "posix.pipe2"), DescriptorTable._pipe),
    "_socket.socketpair": DescriptorTable._pair,
    **dict.fromkeys((_MAKES_SOCKET, "_socket.socket._accept"), DescriptorTable._socket),
    **dict.fromkeys(
        (
            "posix.open",
            _MAKES_FILE,
            "posix.memfd_create",
            "posix.eventfd",
            "posix.pidfd_open",
            "posix.timerfd_create",
            "posix.posix_openpt",
            "_posixshmem.shm_open",
            "select.epoll.__new__",
        ),
        DescriptorTable._file,
    ),
    **dict.fromkeys(("posix.dup", "posix.dup2", "_socket.dup"), DescriptorTable._copy),
    **dict.fromkeys(("posix.close", "_socket.close", "_socket.socket.close"), DescriptorTable._close),
    "_io.FileIO.close": DescriptorTable._close_file,
    "posix.closerange": DescriptorTable._close_range,
    "_socket.socket.recvmsg": DescriptorTable._passed,
    **dict.fromkeys(("select.epoll.register", "select.epoll.modify"), DescriptorTable._register),
    "select.epoll.unregister": DescriptorTable._unregister,
}


def descriptor_of(value: object) -> int:
    """Return the descriptor that an argument is, or that a file in it has; -1: none."""
    found = value.fd if isinstance(value, OpenFile) else value
    return found if isinstance(found, int) else -1


def passed_descriptors(event: Event) -> list[int]:
    """Return the descriptors that came with a message."""
    found: list[int] = []
    outcome = _items(event.outcome)
    for message in _items(outcome[1]) if len(outcome) > 1 else ():
        parts = _items(message)
        if len(parts) == 3 and (parts[0], parts[1]) == _SCM_RIGHTS and isinstance(parts[2], bytes):
            found += struct.unpack(f"={len(parts[2]) // 4}i", parts[2][: len(parts[2]) // 4 * 4])
    return [each for each in found if each >= 0]


_FORK_EXEC = "_posixsubprocess.fork_exec"
_CLOSES_OTHERS, _PASSES = 2, 3
"""Its arguments: whether other descriptors are closed, and those that are not."""
_SPAWNS = ("posix.posix_spawn", "posix.posix_spawnp")
_SPAWN_CLOSES, _SPAWN_COPIES = 1, 2
_STREAMS = ((6, 0), (9, 1), (11, 2))
"""Which arguments of `fork_exec` become the standard streams of the child."""


def given_descriptors(
    table: Mapping[int, ChannelEnd], event: Event | None, inherited: Iterable[int]
) -> dict[int, ChannelEnd]:
    """Return the descriptors that a new program begins with, out of those that the process had which started it.

    `inherited` are those above the standard streams, as far as it is known; `event` started it.
    """
    streams = dict(table)
    kept = set(inherited)
    if event is not None and event.gate == _FORK_EXEC:
        for index, number in _STREAMS:
            given = _argument(event, index)
            if isinstance(given, int) and given in table:
                streams[number] = table[given]
        if _argument(event, _CLOSES_OTHERS):
            kept &= {each for each in _items(_argument(event, _PASSES)) if isinstance(each, int)}
    elif event is not None and event.gate in _SPAWNS:
        _act(streams, _items(_keyword(event, "file_actions")))
    return {number: streams[number] for number in (*range(_STANDARD), *sorted(kept)) if number in streams}


def _act(streams: dict[int, ChannelEnd], actions: Iterable[object]) -> None:
    """Do what `posix_spawn` does with descriptors: (1, FD) closes one, (2, FD, NEW) copies it; others open a file."""
    for action in actions:
        kind, *numbers = _items(action) or (None,)
        if kind == _SPAWN_CLOSES and numbers:
            streams.pop(descriptor_of(numbers[0]), None)
        elif kind == _SPAWN_COPIES and len(numbers) == 2:
            source, target = map(descriptor_of, numbers)
            if source in streams:
                streams[target] = streams[source]
            else:
                streams.pop(target, None)
        elif numbers:
            streams.pop(descriptor_of(numbers[0]), None)


def _keyword(event: Event, name: str) -> object:
    last = event.arguments[-1] if event.arguments else None
    return last.get(name) if isinstance(last, dict) else None


def _argument(event: Event, index: int) -> object:
    arguments = event.arguments or ()
    return arguments[index] if index < len(arguments) else None


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _first(value: object) -> object:
    items = _items(value)
    return items[0] if items else None
