"""Events that are passed by in runs leave the same behind as if each had been decoded, whatever the bytes are."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.events.records import Entry
from replaydbg.events.run_facts import GateRow
from replaydbg.events.values import STAT_FIELDS, ExceptionValue, StatResult, TypeName
from replaydbg.log.coding import encode
from replaydbg.log.entries import selected_events
from replaydbg.log.entries.plain_runs import MOST_RECORDS, PlainRuns, Run
from replaydbg.log.entries.selected_events import PassedEvents, SelectedStream
from tests.harness.build import GATES, LogBuilder

Found = tuple[list[Entry | PassedEvents], str | None, int, int]
_GATES = [GateRow(str(each["name"]), int(str(each["shape"])), str(each["kind"])) for each in GATES]
_STAT = StatResult(*range(-5, len(STAT_FIELDS) - 5))
_LOST = ExceptionValue(TypeName("builtins", "OSError"), (), None)


def _random_log(draw: Random, length: int) -> bytes:
    """Return records of which most come in runs of simple values, with all other kinds between them."""
    log = LogBuilder()
    while len(log.records) < length:
        gate, line = draw.choice([0, 0, 1, 4, 2]), draw.randint(1, 100)
        values: list[Any] = [0, 63, 64, -1, 1 << 40, -(1 << 62), None, True, 0.5, _STAT]
        if draw.random() < 0.3:
            values += ["text", b"bytes", (1, 2), 1 << 70, _LOST]
        for _ in range(draw.randint(1, 30)):
            log.crossing(gate, draw.choice(values), line=line, arguments=(draw.randint(0, 3),))
        if draw.random() < 0.5:
            log.control(2, encode.varint(draw.randint(0, 1 << 30)))  # the time
        if draw.random() < 0.3:
            log.control(5, encode.varint(draw.randint(0, 3)) + encode.varint(0) + encode.varint(9))  # another lane
    return b"".join(log.records)


def _read(data: bytes, piece: int, wanted: str) -> Found:
    pieces = (data[start : start + piece] for start in range(0, len(data), piece))
    stream = SelectedStream(
        pieces, total=len(data), stored=len(data), gates=_GATES, wanted=lambda gate: gate.startswith(wanted)
    )
    return list(stream.selected()), stream.problem, stream.position, stream.crossings


def _both(data: bytes, piece: int, wanted: str = "os.urandom") -> tuple[Found, Found]:
    """Return what is found with runs, learned early, and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selected_events, "_PATIENCE", 0)
        with_runs = _read(data, piece, wanted)
        patch.setattr(PlainRuns, "at", lambda *_: None)
        return with_runs, _read(data, piece, wanted)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([7, 100, 1 << 20]), st.sampled_from(["os.urandom", "none", "time."]))
def test_runs_change_nothing(seed: int, piece: int, wanted: str) -> None:
    data = _random_log(Random(seed), 400)

    with_runs, without = _both(data, piece, wanted)
    assert with_runs == without
    assert with_runs[1] is None


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32))
def test_damage_is_found_at_the_same_place(seed: int) -> None:
    draw = Random(seed)
    data = bytearray(_random_log(draw, 300))
    for _ in range(draw.randint(1, 5)):
        data[draw.randrange(len(data))] = draw.choice([0, 4, 0x43, 0x80, 0xFF, draw.randrange(256)])
    del data[draw.randrange(len(data)) :]

    with_runs, without = _both(bytes(data), draw.choice([50, 1 << 20]))
    assert with_runs == without


def test_they_are_found() -> None:
    one, two, many = encode.varint(1 << 2), encode.varint(200 << 2), encode.varint(70_000 << 2)
    data = (one + b"\x43") * 3 + two + b"\x07" + b"\x41" + many + b"\x81\x01" + b"\x00" + two + b"\x07" + b"\x40"
    runs = PlainRuns([1], [200, 70_000])

    assert runs.at(data + two, 0) == Run(len(data), 6, 200, [7, 129])
    assert runs.at(data, 2) == Run(len(data), 5, 200, [7, 129])
    assert runs.at(encode.varint(2 << 2) + b"\x43", 0) is None
    long = runs.at(one * 0 + (one + b"\x40") * (2 * MOST_RECORDS), 0)
    assert long == Run(2 * MOST_RECORDS, MOST_RECORDS, 1, [])


@pytest.mark.parametrize("value", [b"", b"\x03", b"\x03\x80", b"\x03" + b"\x80" * 9 + b"\x01", b"\x05" + b"1234567"])
def test_what_is_incomplete_or_too_long_is_left_to_the_decoder(value: bytes) -> None:
    head = encode.varint(1 << 2)
    assert PlainRuns([1], []).at(head + value, 0) is None
    assert PlainRuns([], []).at(head + b"\x40", 0) is None


def test_arguments_that_are_not_defined() -> None:
    log = LogBuilder()
    for _ in range(100):
        log.crossing(1, 5, arguments=(1,))
    data = b"".join(log.records) + encode.varint(1 << 2) + encode.varint(2) + b"\x43"

    with_runs, without = _both(data, 1 << 20, "none")
    assert with_runs == without
    assert "arguments 2 is not defined" in str(with_runs[1])
