"""The index of a run, made by the first pass: steps for each event, exceptions, output, hits.

It is kept beside the recording.
"""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from replaydbg.debugger.first_pass.printed_output import printed
from replaydbg.debugger.first_pass.written_values import AGAIN, FRESH, UNCAUGHT, exception_entries, values
from replaydbg.debugger.session_results import Output, Raised
from replaydbg.engine.engine_start import Engine
from replaydbg.engine.reports import Where, read_where
from replaydbg.errors import ForgedMessage, ReplaydbgError
from replaydbg.log.allowance import allowance
from replaydbg.log.coding.decode import Cursor, Malformed, Short
from replaydbg.log.coding.encode import encode_value
from replaydbg.log.coding.shapes import COUNT, one_of
from replaydbg.log.hidden import masked_like
from replaydbg.log.sealed import zstd
from replaydbg.replay.clock import Hits, Moment, Orders, read_report, read_varints
from replaydbg.store.directory import index_path
from replaydbg.store.private import private

MAGIC = b"RDBGIDX9"
LIMIT = 512 << 20
"""Bytes of an index beside a recording; a longer one is made anew each time."""

WINDOW_LOG = 23
"""How far back its compressed bytes may refer, as a power of two."""
CHECKED = 1 << 22
"""Bytes of exceptions and output that are decoded when an index is loaded, to see that they can be."""

_PARTS = ("totals", "steps", "output", "raises")
_WRITTEN = (COUNT, COUNT, COUNT, bytes)
_GIVEN = (COUNT, COUNT, COUNT, COUNT, COUNT)
MOST_OUTPUT = 1 << 20
"""Bytes of output: in more than that, the text of an exception is not searched, since it would have to be decoded."""
LAST_PIECES = 60
"""Of the output: a traceback is printed in pieces."""


# Without slots, for fields that are only decoded on demand: there may be millions of exceptions.
@dataclass(frozen=True)
class Index:
    """The lines of a run by its events, and what happened at which."""

    total: int
    """Lines of the whole run."""
    end: int
    """The last line of the program's own: after it only libraries ran."""
    events: int
    """Events of the whole run."""
    digest: int
    """64 bits over the path."""
    starts: Sequence[int]
    """For each event: how many lines had begun when it was consumed; the first is 0, for the program's start."""
    hits: tuple[Hits, ...]
    """How often each line ran, by file and function."""
    ending: RunEnding
    """How the run ended."""
    uncaught_at_once: Raised | None
    """The exception that ended the program, if the core reported it."""
    raises: bytes
    """The exceptions as the core wrote them."""
    outputs: bytes
    """Output to the standard streams, as the core wrote it."""
    standing: Where | None = None
    """Where the program failed, or its end, if that was kept and the first pass repeated the recording exactly."""

    @property
    def ended(self) -> str:
        """Human-readable end of the run."""
        return self.ending.text

    @property
    def raised(self) -> tuple[Raised, ...]:
        """The exceptions, in order; without those in `left_out`."""
        return self._raises[0]

    @property
    def left_out(self) -> LeftOut | None:
        """The exceptions that `raised` lacks, because there were too many; None: it has all."""
        return self._raises[1]

    @cached_property
    def _raises(self) -> tuple[tuple[Raised, ...], LeftOut | None]:
        return _raised(exception_entries(self.raises), self.ending, self.end)

    @cached_property
    def output(self) -> tuple[Output, ...]:
        """Output to the standard streams, in order."""
        return printed(values(self.outputs, one_of(_WRITTEN, _GIVEN), "output"), self.starts)

    @property
    def knows_failure(self) -> bool:
        """Whether `standing` is the position at which a session opens."""
        if self.standing is None or self.ending.is_bounded:
            return False
        return self.standing.count == (self.uncaught.count if self.uncaught is not None else self.end)

    def moment(self, count: int, point: int = 0) -> Moment:
        """Return the position of the line with that count, or of a point in it."""
        event = max(bisect_left(self.starts, count) - 1, 0)
        return Moment(event, count - self.starts[event], point)

    def count(self, moment: Moment) -> int:
        """Return the count of lines at `moment`, clamped to the run."""
        event = min(moment.event, len(self.starts) - 1)
        return max(1, min(self.starts[event] + moment.step, self.total))

    def lines_after(self, event: int) -> int:
        """Return how many lines ran between an event and the next one, or the end."""
        after = self.starts[event + 1] if event + 1 < len(self.starts) else self.total
        return after - self.starts[event]

    def events_between(self, first: int, last: int) -> range:
        """Return the events that were consumed after the line `first` began and before `last` did."""
        return range(bisect_left(self.starts, first), bisect_left(self.starts, last))

    @cached_property
    def uncaught(self) -> Raised | None:
        """The exception that ended the program, if one did."""
        found = self.uncaught_at_once
        if found is None and self.ending.status != 0:
            found = next((each for each in reversed(self.raised) if each.is_uncaught), None)
        if found is None or len(self.outputs) > MOST_OUTPUT:
            return found
        if found.message and not found.message.lstrip("-").isdecimal():
            return found
        return replace(found, message=_message_of(found, self.output) or found.message)

    def raised_at(self, count: int) -> tuple[Raised, ...]:
        """Return the exceptions that the line with that count raised, in order."""
        first = bisect_left(self.raised, count, key=lambda each: each.count)
        return self.raised[first : bisect_left(self.raised, count + 1, key=lambda each: each.count)]

    def lines_hit(self, file: str) -> dict[int, int]:
        """Return how often each line of `file` ran."""
        found: dict[int, int] = {}
        for each in self.hits:
            if each.file == file:
                for line, number in each.lines.items():
                    found[line] = found.get(line, 0) + number
        return found


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Exceptions in the middle of a run that raised very many of them."""

    number: int
    """How many."""
    first: int
    """The count of the line that raised the first one."""
    last: int
    """The same of the last one."""


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended."""

    text: str
    """In words."""
    status: int
    """The exit status; 0 if it did not come to an exit."""
    is_script: bool
    """Whether the program is a script: then it is known which exception ended it."""
    is_bounded: bool = False
    """Whether it ends in the middle of a computation, after as many lines as the first pass ran in its time."""


def read_index(engine: Engine, ending: RunEnding) -> Index:
    """Return the index of a pass that has ended. Raises ForgedMessage if the program wrote something else."""
    try:
        return _index([engine.read(name) for name in _PARTS], ending)
    except ForgedMessage as error:
        raise engine.keeping.forged(error.reason) from None


def _index(data: list[bytes], ending: RunEnding, standing: bytes = b"") -> Index:
    totals, steps, output, raises = data
    report = read_report(totals, b"", Orders(hits=True))
    try:
        starts = array("Q", accumulate(read_varints(steps), initial=0))
    except OverflowError:
        raise ForgedMessage("it wrote more lines than can be counted") from None
    return Index(
        total=report.lines,
        end=report.last_own or report.lines,
        events=report.event,
        digest=report.digest,
        starts=starts,
        hits=report.hits,
        ending=ending,
        uncaught_at_once=_uncaught(*report.uncaught) if report.uncaught else None,
        raises=raises,
        outputs=output,
        standing=read_where(standing) if standing else None,
    )


def _uncaught(count: int, lane: int, kind: str, message: str, address: int) -> Raised:
    return Raised(count, lane, kind, message, is_uncaught=True)


def _message_of(raised: Raised, output: Sequence[Output]) -> str:
    """Return the first line of an exception's text out of the traceback that was printed; empty: there is none.

    The core reports the first argument alone: for more it would have to run the program's Python.
    """
    last = b"".join(each.data for each in output[-LAST_PIECES:] if each.stream == 2).decode("utf-8", "backslashreplace")
    # On a terminal it may be coloured.
    plain = re.sub(r"\x1b\[[\d;]*m", "", last)
    found = re.findall(rf"^(?:[\w.]+\.)?{re.escape(raised.type)}: (.*)$", plain, re.MULTILINE)
    return found[-1] if found else ""


class _Codes(NamedTuple):
    """Places where exceptions are raised, numbered from 0; the first one is unknown."""

    files: list[str]
    functions: list[str]


def _raised(
    entries: Iterator[list[Any]], ending: RunEnding, last_own: int
) -> tuple[tuple[Raised, ...], LeftOut | None]:
    found: list[Raised] = []
    last: dict[int, int] = {}
    lineages: list[tuple[str, ...]] = [()]  # as they are numbered from 1
    codes = _Codes([""], [""])
    left_out = None
    for entry in entries:
        if not entry or isinstance(entry[0], str):
            lineages.append(tuple(entry))
            continue
        if len(entry) == 3:
            if isinstance(entry[1], int):
                left_out = LeftOut(*entry)
            else:
                codes.files.append(entry[1])
                codes.functions.append(entry[2])
            continue
        address, kind = entry[4], entry[8]
        at = last.get(address)
        if kind == UNCAUGHT and at is not None and found[at].type == entry[2]:
            found[at] = replace(found[at], is_uncaught=True)
            continue
        found.append(_of_entry(entry, lineages, codes))
        if kind == FRESH:
            last[address] = len(found) - 1
    if ending.status == 1 and not ending.is_script and not any(each.is_uncaught for each in found):
        # A module or a command (-m, -c): the interpreter runs them by itself, and does not report which one. After
        # the program's last line libraries raise others while they print it.
        main = [
            at for at, each in enumerate(found) if each.lane == 0 and each.type != "StopIteration" and not each.is_again
        ]
        exits = [at for at in main if found[at].type == "SystemExit" and found[at].count > last_own]
        raised_last = max((found[at].count for at in main if found[at].count <= last_own), default=0)
        for at in exits[-1:] or [at for at in main if found[at].count == raised_last][:1]:
            found[at] = replace(found[at], is_uncaught=True)
    # In the order of the lines that raised them: what such a line has called may have raised others before.
    return tuple(sorted(found, key=lambda each: each.count)), left_out


def _of_entry(entry: list[Any], lineages: Sequence[tuple[str, ...]], codes: _Codes) -> Raised:
    count, lane, type_, message, _, lineage, code, line, kind = entry
    if lineage >= len(lineages):
        raise ForgedMessage("it wrote an exception of an unknown type")
    if code >= len(codes.files):
        raise ForgedMessage("it wrote an exception of an unknown code object")
    return Raised(
        max(count, 1) if kind == UNCAUGHT else count,  # raised in no frame: a syntax error of the program itself
        lane,
        type_,
        message,
        is_uncaught=kind == UNCAUGHT,
        lineage=lineages[lineage],
        file=codes.files[code],
        line=line,
        function=codes.functions[code],
        is_again=kind == AGAIN,
    )


# ---- beside the recording ----


def save_index(recording: Path, engine: Engine, ending: RunEnding, standing: bytes = b"") -> None:
    """Keep what the pass wrote. Where nothing can be written, nothing is: the next pass finds it again.

    `standing`: the position at the failure, or at the end, as a process there reports it; empty: it is not to be used.
    """
    try:
        key = _key(recording)
    except FileNotFoundError:
        return  # a live directory when it was opened: it has been sealed since
    if not key:
        return
    data = [engine.read(name) for name in _PARTS]
    ended = (ending.text, ending.status, ending.is_script, ending.is_bounded, standing)
    # Texts of exceptions and output: the index is beside the recording, and nothing in it is encrypted.
    encoded = encode_value([key, *ended, *data])
    if masked_like(recording, encoded) != encoded:
        return  # a mask can be anywhere in it, in the name of a file, too
    packed = zstd.compressor(level=3)(encoded)
    temporary = index_path(recording).with_name(f".{recording.name}.index-{os.getpid()}")
    try:
        with open(temporary, "wb", opener=private) as file:
            file.write(MAGIC + packed)
        temporary.replace(index_path(recording))
    except OSError:
        with suppress(OSError):  # a full disk takes the name and not what it names
            temporary.unlink()


def load_index(recording: Path) -> Index | None:
    """Return the index kept beside `recording`; None: there is none, or it is of another file, or damaged."""
    try:
        data = index_path(recording).read_bytes()
        if not data.startswith(MAGIC):
            return None
        value: Any = Cursor(_plain(data), (), budget=1 << 12).value()
        key, text, status, is_script, is_bounded, standing, *parts = value
        if not key or key != _key(recording):
            return None
        found = _index(parts, RunEnding(text, status, is_script, is_bounded), standing)
        # Somebody else's file may lie there: what is decoded later is decoded now, unless that takes seconds.
        if len(found.raises) + len(found.outputs) <= CHECKED:
            _ = found.raised, found.output
        return found
    except (OSError, ReplaydbgError, Malformed, Short, MemoryError, AssertionError):
        return None
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError):
        return None


def _plain(data: bytes) -> bytes:
    """Return what was compressed, without believing how long it claims to be."""
    most = min(LIMIT, allowance(len(data)))
    plain = zstd.expand(data[len(MAGIC) :], most + 1, WINDOW_LOG)
    if len(plain) > most:
        raise ValueError("the index expands to more bytes than its size allows")
    return plain


def _key(recording: Path) -> str:
    """Return what identifies the content of a recording; empty: it is live, and may have grown by the next look."""
    if recording.is_dir():
        return ""
    # A recording is not changed once it is sealed: its length and its end identify it.
    with recording.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 4096))
        return hashlib.sha256(f"{size}:".encode() + file.read()).hexdigest()
