"""Open file descriptions while the log is read, and the numbers that refer to them.

The kernel gives a new descriptor the lowest free number (open(2)). So the number of each one that is opened also shows
which lower ones are open, whatever opened them, and that one which it had before was closed, whatever closed it: an
object of a socket that is garbage-collected, a mapping and C code close descriptors without an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from replaydbg.events import linux
from replaydbg.events.values import Value
from replaydbg.resources.file_names import FileNode
from replaydbg.resources.kinds import (
    Descriptor,
    Handle,
    LastFileRead,
    LastFileWrite,
    MakingCall,
    SocketOption,
    SocketState,
    TlsSession,
    Unknown,
)

MOST_DESCRIPTORS = 1 << 20
"""The kernel's default limit for descriptors of a process: a damaged log can have any number."""
NOT_SHOWN = Unknown("the event log does not show it")
_BLOCKING = Unknown("a socket object sets this without an event")
UNSEEN = "opened by code whose calls are not recorded"


@dataclass(slots=True)
class SocketFacts:
    """Facts about a socket."""

    family: int | Unknown = NOT_SHOWN
    type: int | Unknown = NOT_SHOWN
    protocol: int | Unknown = NOT_SHOWN
    state: SocketState = SocketState.NEW
    bound: Value | Unknown = None
    backlog: int | None = None
    peer: Value | Unknown = None
    is_accepted: bool = False
    shut: tuple[str, ...] = ()
    options: dict[tuple[int, int], SocketOption] = field(default_factory=dict)
    tls: TlsSession | None = None
    is_non_blocking: bool | Unknown = _BLOCKING


@dataclass(slots=True, eq=False)
class Description:
    """An open file description of the kernel."""

    kind: str
    """`file`, `directory`, `pipe`, `socket`, `terminal`, `epoll`, `eventfd`, `timerfd`, `pidfd`, `memory`, or a noun
    phrase for one of another kind.
    """
    origin: MakingCall
    flags: int | Unknown
    path: str | bytes = ""
    """As the program gave it; the name of memory."""
    node: FileNode | None = None
    offset: int | Unknown = NOT_SHOWN
    can_seek: bool | None = None
    """None: not known."""
    last_write: LastFileWrite | None = None
    last_read: LastFileRead | None = None
    side: str = ""
    """Of a pipe, a pair of sockets, or a pseudoterminal: which of both."""
    socket: SocketFacts = field(default_factory=SocketFacts)
    watched: dict[int, int] | Unknown = field(default_factory=dict)
    """Of an epoll: the mask of each descriptor."""
    value: int | Unknown = NOT_SHOWN
    """Of an eventfd its counter, of a pidfd its process, of a timerfd its clock."""
    settings: tuple[Value, ...] | None = None
    set_by: MakingCall | None = None
    numbers: set[int] = field(default_factory=set)
    children: set[int] = field(default_factory=set)
    """Children that have it, too, and were not waited for."""
    is_unlinked: bool = False

    def handle(self, numbers: NumberTable) -> Handle:
        """Return it as a frozen value."""
        found = tuple(numbers.descriptor(each) for each in sorted(self.numbers))
        return Handle(found, self.origin, self.flags, tuple(sorted(self.children)))

    def has_flag(self, flag: int) -> bool:
        """Whether a status flag is known to be set."""
        return isinstance(self.flags, int) and bool(self.flags & flag)


@dataclass(slots=True)
class NumberFacts:
    """A descriptor of the process."""

    description: Description
    origin: MakingCall
    close_on_exec: bool | Unknown
    doubt: str | None = None
    has_file_object: bool = False
    """Whether a file object was made for this number, which leaves it open if it was made with `closefd=False`."""
    instead: tuple[int, ...] = ()
    """Of an inferred number: those that it has if they were free, by number."""


class NumberTable:
    """The descriptors of a process."""

    def __init__(self, found: Callable[[Description], None], closed: Callable[[Description], None]) -> None:
        """`found` is called with what was opened unseen, `closed` with each description that is no longer open."""
        self._found, self._closed = found, closed
        self._numbers: dict[int, NumberFacts] = {}
        self._perhaps: dict[int, NumberFacts] = {}
        """Closed by a file object for them, unless that was made with `closefd=False`, which is not recorded."""
        self._suspects: set[int] = set()
        """Those that may have been closed without an event, see `suspect`."""
        self._free: list[int] = []
        self._top = 0
        """All numbers from here on that are not in the table are free."""

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def get(self, number: int) -> Description | None:
        """Return what a number refers to, without concluding anything from its use."""
        facts = self._numbers.get(number)
        return facts.description if facts is not None else None

    def facts(self, number: int) -> NumberFacts | None:
        """Return what is known of a number."""
        return self._numbers.get(number)

    def made_by(self, number: int, origin: MakingCall) -> bool:
        """Whether a call made this number."""
        facts = self._numbers.get(number)
        return facts is not None and facts.origin == origin

    def used(self, number: int) -> Description | None:
        """Return what a number refers to that the program used successfully: so it is open."""
        facts = self._numbers.get(number)
        if facts is None and (facts := self._perhaps.pop(number, None)) is not None:
            self._put(number, facts)
        if number in self._suspects:
            self._is_open(number)
        return facts.description if facts is not None else None

    def descriptor(self, number: int) -> Descriptor:
        """Return one as a frozen value."""
        facts = self._numbers[number]
        return Descriptor(number, facts.origin, facts.close_on_exec, facts.doubt)

    def lowest_free(self) -> int:
        """Return the number that the kernel gives next."""
        while self._free and self._free[0] in self._numbers:
            heappop(self._free)
        while self._top in self._numbers:
            self._top += 1
        return min(self._free[0], self._top) if self._free else self._top

    def opened(
        self,
        number: int,
        description: Description,
        origin: MakingCall,
        *,
        close_on_exec: bool | Unknown = True,
        is_lowest: bool = True,
        doubt: str | None = None,
    ) -> None:
        """Add a descriptor; `is_lowest`: the kernel chose the lowest free number."""
        if not 0 <= number < MOST_DESCRIPTORS:
            return
        if number in self._numbers:
            self._replaced(number)
        for each in [each for each in self._suspects if is_lowest and each < number]:
            self._is_open(each)
        while is_lowest and (lower := self.lowest_free()) < number:
            self._unseen(lower, origin)
        self._put(number, NumberFacts(description, origin, close_on_exec, doubt))

    def guess(self, description: Description, origin: MakingCall, doubt: str) -> None:
        """Add a descriptor that was opened without an event of its own: it has the lowest free number."""
        number = self.lowest_free()
        instead = tuple(sorted(each for each in self._suspects if each < number))
        self._put(number, NumberFacts(description, origin, True, doubt, instead=instead))

    def suspect(self, number: int, doubt: str) -> None:
        """Take that a descriptor may be closed from now on, until it is used or a higher number is opened."""
        facts = self._numbers.get(number)
        if facts is not None and facts.doubt is None:
            facts.doubt = doubt
            self._suspects.add(number)

    def _is_open(self, number: int) -> None:
        self._suspects.discard(number)
        self._numbers[number].doubt = None

    def _replaced(self, number: int) -> None:
        """Follow that a number was given again: what had it is closed, or if it was inferred, has another one.

        If a suspect was closed when it was opened, all that were inferred since have the number before theirs.
        """
        facts = self._numbers[number]
        better = next((each for each in facts.instead if each in self._suspects), None)
        if better is None:
            self.drop(number)
            return
        chain = sorted(each for each in self._numbers if each <= number and better in self._numbers[each].instead)
        self.drop(better)
        moved = [taken for each in chain if (taken := self._take(each)) is not None]
        for each, taken in zip((better, *chain), moved, strict=False):
            taken.instead = ()
            self._put(each, taken)

    def drop(self, number: int) -> Description | None:
        """Remove a descriptor, and return what it referred to."""
        self._forget_perhaps(number)
        facts = self._take(number)
        if facts is None:
            return None
        if not facts.description.numbers:
            self._closed(facts.description)
        return facts.description

    def drop_perhaps(self, number: int) -> None:
        """Remove a descriptor whose file object was closed: it may have left it open."""
        self._forget_perhaps(number)
        facts = self._take(number)
        if facts is not None:
            self._perhaps[number] = facts

    def _take(self, number: int) -> NumberFacts | None:
        facts = self._numbers.pop(number, None)
        self._suspects.discard(number)
        if facts is not None:
            facts.description.numbers.discard(number)
            if number < self._top:
                heappush(self._free, number)
        return facts

    def _forget_perhaps(self, number: int) -> None:
        facts = self._perhaps.pop(number, None)
        if facts is not None and not facts.description.numbers:
            self._closed(facts.description)

    def _put(self, number: int, facts: NumberFacts) -> None:
        if self._perhaps.get(number) is not facts:
            self._forget_perhaps(number)
        if number > self._top and number not in self._numbers:
            # Those below that were never used must be found again as free ones.
            for each in range(self._top, min(number, self._top + _MOST_GAP)):
                if each not in self._numbers:
                    heappush(self._free, each)
            self._top = number
        self._numbers[number] = facts
        facts.description.numbers.add(number)

    def _unseen(self, number: int, origin: MakingCall) -> None:
        facts = self._perhaps.pop(number, None)
        if facts is None:
            hidden = MakingCall(origin.event, origin.lane, None)
            other = Description("descriptor", hidden, NOT_SHOWN)
            doubt = f"{UNSEEN}; it was open at event {origin.event:,}"
            facts = NumberFacts(other, hidden, NOT_SHOWN, doubt)
            self._found(other)
        self._put(number, facts)


_MOST_GAP = 1 << 12
"""Free numbers that are remembered below a high one (of `dup2`, or inherited). More are opened by no program."""


def status_flags(flags: int, known: linux.OpenFlags) -> int:
    """Return the flags of `open` that stay with the description."""
    once = linux.O_CREAT | linux.O_EXCL | linux.O_NOCTTY | linux.O_TRUNC | linux.O_CLOEXEC
    return flags & ~once & ~known.large_file
