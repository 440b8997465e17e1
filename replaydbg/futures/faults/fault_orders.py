"""Faults as the core takes them, and where they came as its log says."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence

from replaydbg.classes import dataclass
from replaydbg.errors import UsageError
from replaydbg.events.records import Control
from replaydbg.events.run_facts import GateRow
from replaydbg.futures.future import RunningFuture
from replaydbg.gates.faults import ORDER, SHORT, STEP, STEP_SECONDS, TIMEOUT, FaultColumn, error_number, full_disk

_FAULT = struct.Struct("=iiqIHHH96H4096s")
_MOST_GATES, _MOST_DATA = 96, 4096
_ERROR, _KINDS, _OUTCOME, _STATEMENT = 1, {TIMEOUT: 2, SHORT: 3, STEP: 4, ORDER: 5}, 6, 7
_NOTE = re.compile(r"(?P<number>\d+) (?P<gate>\S+) at (?P<line>.*)")


@dataclass(frozen=True, slots=True)
class Fault:
    """A call that fails: the `number`-th one, from 1, of those of a column after the moment."""

    column: FaultColumn
    fault: str
    """The name of an error, or one of the other kinds of the table."""
    number: int

    def encoded(self, gates: Sequence[GateRow]) -> bytes:
        """Return it as the core takes it; `gates`: the rows of the recording."""
        kind, error = _KINDS.get(self.fault, _ERROR), error_number(self.fault)
        value = STEP_SECONDS * 1_000_000_000 if self.fault == STEP else 0
        rest = full_disk() if self.fault == "ENOSPC" else ()
        return _encoded(kind, error, value, self.number, _numbers(gates, self.column.gates), _numbers(gates, rest))


@dataclass(frozen=True, slots=True)
class MetFault:
    """A call that failed."""

    gate: str
    line: str
    """Of the program, such as `save.py:12`."""


def encoded_outcome(gate: str, is_raised: bool, data: bytes, gates: Sequence[GateRow]) -> bytes:
    """Return, as the core takes it, that the first call of `gate` returns or raises what `data` is.

    Raises UsageError if that is too long.
    """
    if len(data) > _MOST_DATA:
        raise UsageError(f"--set takes a value of at most {_MOST_DATA:,} bytes (got {len(data):,})")
    return _encoded(_OUTCOME, int(is_raised), 0, 1, _numbers(gates, (gate,)), [], data)


def encoded_statement(source: str) -> bytes:
    """Return, as the core takes it, a statement that runs in the program inside the first call. Raises UsageError."""
    data = source.encode()
    if len(data) > _MOST_DATA or b"\0" in data:
        raise UsageError(f"--set takes a statement of at most {_MOST_DATA:,} bytes (got {len(data):,})")
    return _encoded(_STATEMENT, 0, 0, 1, [], [], data)


def _encoded(
    kind: int, error: int, value: int, number: int, counted: list[int], rest: list[int], data: bytes = b""
) -> bytes:
    numbers = [*counted, *rest][:_MOST_GATES]
    padded = numbers + [0] * (_MOST_GATES - len(numbers))
    return _FAULT.pack(kind, error, value, number, len(counted), len(rest), len(data), *padded, data)


def _numbers(gates: Sequence[GateRow], names: Iterable[str]) -> list[int]:
    by_name = {gate.name: number for number, gate in enumerate(gates, 1)}
    return [by_name[name] for name in names if name in by_name]


def met_faults(running: RunningFuture, event: int, gates: Sequence[GateRow]) -> dict[int, MetFault]:
    """Return the faults of a future that came, by their index. `event`: the last one before it."""
    found = {}
    for entry in running.own_entries(event, gates):
        if isinstance(entry, Control) and entry.note is not None and entry.note[0] == "fault":
            match = _NOTE.fullmatch(entry.note[1])
            if match is not None:
                found[int(match["number"])] = MetFault(match["gate"], match["line"])
    return found
