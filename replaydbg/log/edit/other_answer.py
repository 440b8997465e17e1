"""Give one event of a log another answer: what its call returned, or received into a buffer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import Corrupt, UsageError
from replaydbg.events.records import Event
from replaydbg.events.run_facts import GateRow
from replaydbg.events.values import ContentRef, Value
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.coding.encode import encode_value
from replaydbg.log.entries.logfile import LOG_HEADER, pack_log_header, read_log_header
from replaydbg.log.entries.raw import RawRecord, RawStream
from replaydbg.log.entries.stream import SHAPE_ARGUMENTS, SHAPE_DIGEST, SHAPE_FILLED

MOST = 1 << 20
"""Bytes of an answer, at most."""
_PLAIN = (bool, int, float, str, bytes, type(None), tuple, list, dict)
_SHAPES = SHAPE_ARGUMENTS | SHAPE_DIGEST | SHAPE_FILLED


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """The value that an event returns instead of the recorded one."""

    event: int
    """Its number, from 1."""
    value: Value
    """Plain data: what the call returned; for one that fills a buffer, the bytes in it."""


def set_answer(log: Path, answer: NewAnswer, gates: Sequence[GateRow], more_than_values: Collection[str]) -> None:
    """Replace the answer of an event in the log file of a replay. Raises UsageError, Corrupt.

    `more_than_values`: gates whose results are no values, such as descriptors.
    """
    data = log.read_bytes()
    header = read_log_header(data)
    if header is None:
        raise Corrupt(str(log), "it has no event log")
    body = data[LOG_HEADER : header.committed]
    stream = RawStream(iter([body]), total=len(body), stored=len(body), gates=gates)
    at = LOG_HEADER
    for raw in stream.records():
        entry = raw.entry
        if isinstance(entry, Event) and entry.number == answer.event:
            if entry.gate in more_than_values:
                raise _more_than_value(entry)
            made = _answered(raw, entry, answer, gates)
            committed = header.committed + len(made) - len(raw.data)
            end = at + len(raw.data)
            whole = data[LOG_HEADER:at] + made + data[end : header.committed]
            log.write_bytes(pack_log_header(header._replace(committed=committed)) + whole)
            return
        at += len(raw.data)
    raise UsageError(f"event {answer.event:,} is not among the events that are replayed.")


def _answered(raw: RawRecord, event: Event, answer: NewAnswer, gates: Sequence[GateRow]) -> bytes:
    """Return the record of an event with another answer."""
    shape = next((each.shape for each in gates if each.name == event.gate), 0) & _SHAPES
    value = answer.value
    if event.raised:
        raise UsageError(f"event {event.number:,} is {event.gate}, which raised: it has no answer to change.")
    cursor = Cursor(raw.data, ())
    cursor.varint()
    if shape & SHAPE_ARGUMENTS:
        cursor.varint()
    if shape & SHAPE_DIGEST:
        cursor.raw(4)
    head = raw.data[: cursor.pos]
    is_filled = bool(shape & SHAPE_FILLED)
    if is_filled and not isinstance(event.outcome, bytes | ContentRef):
        _check_type(event, value, bytes)
        return head + encode_value(len(value)) + encode_value(value)
    recorded = event.outcome
    kind = bytes if isinstance(recorded, bytes | ContentRef) else type(recorded)
    if kind not in _PLAIN:
        raise _more_than_value(event)
    _check_type(event, value, kind)
    return head + encode_value(value) + (encode_value(b"") if is_filled else b"")


def _more_than_value(event: Event) -> UsageError:
    return UsageError(f"event {event.number:,} is {event.gate}, whose result is more than a value.")


def _check_type(event: Event, value: Value, kind: type) -> None:
    if type(value) is not kind:
        found = type(value).__name__
        raise UsageError(
            f"event {event.number:,} is {event.gate}, which returned {kind.__name__}: VALUE must be that, too "
            f"(got {found})."
        )
    if isinstance(value, bytes | str) and len(value) > MOST:
        raise UsageError(f"--set takes a value of at most {MOST:,} bytes (got {len(value):,})")
