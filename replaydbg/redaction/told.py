"""What a replay tells of itself: the bytes that leave the program, and how the program ends.

The core writes them into a file (replaydbg/native/ending/told.c), of a replay of the original and of one of the copy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from replaydbg.classes import NamedTuple
from replaydbg.events.show import show_crossing
from replaydbg.installed import is_installed
from replaydbg.log.coding.shapes import COUNT, ListOf, decoded, one_of
from replaydbg.secrets.pseudonyms import Pseudonyms

_HEAD = struct.Struct("<QQQ")
"""The kind of a piece, the number of its event, and the length of the bytes that follow."""
_OUTPUT, _CALL, _END, _THREAD = range(4)
_CALL_SHAPE = (str, object, str, COUNT, str)
_RAISED_SHAPE = (one_of(None, (str, str, one_of(None, str))), ListOf((str, COUNT, str, bool)))
_END_SHAPE = (str, int, ListOf((str, COUNT, str)), _RAISED_SHAPE)


class ToldPlace(NamedTuple):
    """A line of code that ran."""

    file: str
    """As in its code object; `?` without a Python frame."""
    line: int
    """From 1; 0: unknown."""
    function: str
    """The qualified name."""

    def __str__(self) -> str:
        """Return it as in a traceback."""
        return f'File "{self.file}", line {self.line}, in {self.function}'

    @property
    def is_own(self) -> bool:
        """Whether it is known, and not of the interpreter or of a library."""
        return self.line > 0 and "<frozen" not in self.file and not is_installed(self.file)


class OpenCall(NamedTuple):
    """A call that has not returned when the program ends."""

    gate: str
    """Such as `posix.kill`."""
    arguments: Any
    """A tuple; None if there are none to compare."""
    place: ToldPlace
    """The innermost line."""

    def __str__(self) -> str:
        """Return it as a call."""
        return show_crossing(self.gate, self.arguments if isinstance(self.arguments, tuple) else ())


class ToldException(NamedTuple):
    """An exception that nobody caught."""

    module: str
    """The module of its class; `?` for a class of the interpreter."""
    name: str
    """The qualified name of its class."""
    text: str | None
    """`str()` of it; None: code of the program makes it, or it is long."""

    def __str__(self) -> str:
        """Return it as the last line of a traceback."""
        return f"{self.kind}: {self.text}" if self.text else self.kind

    @property
    def kind(self) -> str:
        """Its class, as in a traceback."""
        return self.name if self.module in ("?", "__main__") else f"{self.module}.{self.name}"


class UncaughtException(NamedTuple):
    """An exception that nobody caught, and where it was raised."""

    exception: ToldException | None
    """None: there was none."""
    places: tuple[ToldPlace, ...]
    """The lines that it passed, innermost last."""

    @property
    def kind(self) -> tuple[object, ...]:
        """All but the text, which is output if it is printed."""
        return (self.exception[:2] if self.exception is not None else None, self.places)

    @property
    def text(self) -> str | None:
        """The text of the exception; None: it is not known."""
        return self.exception.text if self.exception is not None else None

    @property
    def place(self) -> str:
        """The innermost line of the program, as in a traceback; empty if there is none."""
        return str(next((each for each in reversed(self.places) if each.is_own), ""))


NOTHING_RAISED = UncaughtException(None, ())


class ToldEnd(NamedTuple):
    """How a program ends in a replay."""

    event: int
    """The number of events until then, and 1."""
    how: str
    """`exit`, `signal`, `call` (its last event ended it), or the kind of the report with which the replay ended."""
    number: int
    """The exit code, or the number of the signal; else 0."""
    stack: tuple[ToldPlace, ...]
    """The lines at which it ended, innermost first; empty if the interpreter had ended."""
    raised: UncaughtException
    """The exception that ended it."""
    calls: tuple[OpenCall, ...]
    """The calls that had not returned, of all threads, in the order in which they began."""
    threads: tuple[UncaughtException, ...] = ()
    """The exceptions that ended threads, in their order."""

    @property
    def place(self) -> str:
        """The innermost line of the program at which it ended, as in a traceback; empty if there is none."""
        places = [*reversed(self.raised.places), *self.stack, *(each.place for each in reversed(self.calls))]
        return str(next((each for each in places if each.is_own), ""))


def output_pieces(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield what leaves the program, piece by piece, each with the number of its event if no other one came first."""
    for kind, event, data in _pieces(file):
        if kind == _OUTPUT:
            yield event, data


def read_end(file: BinaryIO, pseudonyms: Pseudonyms | None = None) -> ToldEnd | None:
    """Return how the program ended, with the pseudonyms in it if they are given.

    None: it was ended in a way that the core did not notice. Raises ForgedMessage.
    """
    calls: list[OpenCall] = []
    threads: list[UncaughtException] = []
    for kind, event, data in _pieces(file):
        if kind == _OUTPUT:
            continue
        made = data if pseudonyms is None else pseudonyms.replaced(data)
        if kind == _CALL:
            gate, arguments, *place = decoded(made, _CALL_SHAPE, "call")
            calls.append(OpenCall(gate, arguments, ToldPlace(*place)))
        elif kind == _THREAD:
            threads.append(_raised(*decoded(made, _RAISED_SHAPE, "exception")))
        else:
            how, number, stack, raised = decoded(made, _END_SHAPE, "end")
            places = tuple(ToldPlace(*each) for each in stack)
            return ToldEnd(event, how, number, places, _raised(*raised), tuple(calls), tuple(threads))
    return None


def _raised(exception: Sequence[Any] | None, places: Sequence[Sequence[Any]]) -> UncaughtException:
    found = ToldException(*exception) if exception is not None else None
    return UncaughtException(found, tuple(ToldPlace(*each[:3]) for each in places))


def _pieces(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    file.seek(0)
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        kind, event, length = _HEAD.unpack(head)
        yield kind, event, file.read(length)
