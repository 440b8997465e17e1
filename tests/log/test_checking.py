"""A check of a whole recording finds what decoding every record finds, in a time that the file's size limits."""

import random
import struct
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

from replaydbg.events.run_facts import GateRow
from replaydbg.log.coding import encode
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.entries.stream import LogStream
from replaydbg.log.reader import open_recording
from tests.harness.build import GATES, Example, LogBuilder
from tests.harness.sanitizer import SLOWER
from tests.log.test_bounded_readers import _assert_bounded, _bomb, _file

_NONE, _TRUE, _PID = b"\x04\x00", b"\x04\x02", b"\x04\x03\xf2\xc0\x01"
_SWITCHES = b"\x16\x01\x02\x90\x4e\x16\x00\x02\x90\x4e"
_COLLISIONS = (1 << 61) - 1
"""Multiples of it have the same hash."""


def _time(number: int) -> bytes:
    return b"\x0a" + encode.varint(number)


def _float(number: float) -> bytes:
    return b"\x04\x05" + struct.pack("<d", number)


def _start() -> LogBuilder:
    """Return a log in which site 1 is a call without arguments."""
    log = LogBuilder()
    log.crossing(0, 1.0)
    return log


def _stream(log: LogBuilder, *, stored: int = 0, piece: int = 1 << 20) -> LogStream:
    data = b"".join(log.records)
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return LogStream(pieces, total=len(data), stored=stored, gates=_gates())


def _gates() -> tuple[GateRow, ...]:
    return tuple(GateRow(str(each["name"]), int(str(each["shape"])), str(each["kind"])) for each in GATES)


def _random_log(rnd: random.Random) -> LogBuilder:
    """Return a log of repeated stretches, definitions between them, and sometimes damage."""
    log = _start()
    known = [_NONE, _TRUE, _PID, _SWITCHES, _time(5), _float(1.0), b"\x04\x06\x03abc", b"\x04\x08\x02\x41\x42"]
    for number in range(rnd.randrange(1, 30)):
        loop = rnd.choices(known, k=rnd.randrange(1, 12))
        for record in islice(cycle(loop), rnd.randrange(300)):
            log.raw(record)
        if rnd.random() < 0.3:
            log.crossing(1, rnd.randrange(3), arguments=(number,))
        if rnd.random() < 0.1:
            known.append(encode.varint(3 << 2) + encode.varint(rnd.randrange(1, 4)) + b"\1\2\3\4\x40")
        if rnd.random() < 0.05:
            log.raw(bytes(rnd.randrange(256) for _ in range(rnd.randrange(8))))
    return log


@pytest.mark.parametrize("seed", range(300))
def test_a_check_finds_what_decoding_finds(seed: int) -> None:
    rnd = random.Random(seed)
    log = _random_log(rnd)
    piece = rnd.choice((1 << 20, 700, 64))
    decoded, checked = _stream(log, piece=piece), _stream(log, piece=piece)

    for _ in decoded.entries():
        pass
    checked.check_entries()

    assert (checked.problem, checked.position, checked.crossings) == (
        decoded.problem,
        decoded.position,
        decoded.crossings,
    )


def _clocked(calls: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Yield `count` calls, with the time after each 256th, as a recorder writes it."""
    rnd = random.Random(1)
    passed = 0
    for number in range(count):
        yield next(calls)
        if number & 255 == 0:
            passed += rnd.randrange(20_000, 60_000)
            yield _time(passed)


def _clock() -> Iterator[bytes]:
    rnd = random.Random(2)
    now = 1.7e9
    while True:
        now += 1e-7 + rnd.random() * 1e-6
        yield _float(now)


def _polling() -> Iterator[bytes]:
    stat = b"\x04\x0c" + b"".join(encode.zigzag(number << 7) for number in range(13))
    for each in _clock():
        yield each
        yield from [stat] * 4


def _answers() -> Iterator[bytes]:
    rnd = random.Random(3)
    while True:
        yield _NONE if rnd.random() < 0.9 else _TRUE


_GENUINE: dict[str, tuple[Callable[[], Iterator[bytes]], int]] = {
    "one call": (lambda: cycle([_PID]), 4_000_000),
    "the clock": (_clock, 300_000),
    "polling": (_polling, 300_000),
    "answers of one bit": (_answers, 1_000_000),
    "a long loop": (lambda: cycle([b"\x04" + encode.encode_value(number) for number in range(100)]), 1_000_000),
    "threads that compute": (lambda: cycle([_SWITCHES]), 1_000_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", _GENUINE)
def test_uniform_logs_of_programs_are_sound(kind: str, tmp_path: Path) -> None:
    calls, count = _GENUINE[kind]
    log = _start()
    log.records += _clocked(calls(), count)
    path = Example(log=log.to_bytes()).write(tmp_path)

    with open_recording(path) as recording:
        begin = time.process_time()
        recording.check()
        seconds = time.process_time() - begin
        used = _work(path)

    assert not recording.damage
    assert seconds < 5 * SLOWER
    assert used < 0.6, "of the work that is allowed"


def _work(path: Path) -> float:
    """Return the part of the allowed work that a check of the event log takes."""
    with open_recording(path) as recording:
        stream = recording._stream("log", recording.log_header, LogStream)
        allowed = stream._steps
        stream.check_entries()
        return (allowed - stream._steps + stream._cursor.work) / allowed


def _many(filler: bytes, size: int, path: Path) -> Path:
    log = _start()
    size = LOG_HEADER + sum(map(len, log.records)) + size // len(filler) * len(filler)
    return _file(path, {"log": _bomb("log", log.to_bytes(committed=size), filler, size)})


_CLAIMS = {
    "times": (bytes((10, 1)), 200 << 20),
    "as many times as there may be": (bytes((10, 1)), 760 << 20),
    "calls": (_NONE, 700 << 20),
    "notes": (encode.varint(4 << 2 | 2) + encode.encode_value(("a", "b")), 60 << 20),
    "marks": (encode.varint(11 << 2 | 2) + encode.encode_value("mark"), 60 << 20),
    "switches": (_SWITCHES, 200 << 20),
    "long lists": (b"\x04\x08" + encode.varint(100_000) + bytes(100_000), 700 << 20),
    "lists of lists": (b"\x04\x09" + encode.varint(50_000) + b"\x09\x01\x40" * 50_000, 700 << 20),
    "lone surrogates": (b"\x04" + encode.encode_value("\ud800" * 300_000), 700 << 20),
    "sets": (b"\x04\x10" + encode.varint(100_000) + b"\x40" * 100_000, 700 << 20),
    "lists of long numbers": (
        b"\x04\x09" + encode.varint(50_000) + (b"\x03" + b"\xff" * 9 + b"\1") * 50_000,
        700 << 20,
    ),
    "lists of texts": (b"\x04\x09" + encode.varint(100_000) + b"\x06\1a" * 100_000, 700 << 20),
}


@pytest.mark.slow
@pytest.mark.parametrize("claim", _CLAIMS)
def test_a_small_file_with_many_records_is_checked_soon(claim: str, tmp_path: Path) -> None:
    filler, size = _CLAIMS[claim]
    path = _many(filler, size, tmp_path / "many.rdbg")

    said = _assert_bounded("verify", path, code=None)

    assert len(said.splitlines()) < 2
    assert not said or "takes more work to read than" in said


@pytest.mark.slow
def test_different_records_in_few_bytes_are_refused(tmp_path: Path) -> None:
    """Each differs from the one before, and all of them compress well."""
    log = _start()
    log.records += (b"\x04" + b"\x08\x01" * 100 + encode.encode_value(number) for number in range(120_000))
    path = Example(log=log.to_bytes()).write(tmp_path)

    said = _assert_bounded("verify", path)

    assert "takes more work to read than a recording of its size" in said


@pytest.mark.parametrize("kind", [encode.SET, encode.FROZENSET, encode.DICT])
def test_elements_of_one_hash_are_refused(kind: int, tmp_path: Path) -> None:
    numbers = [encode.encode_value(number * _COLLISIONS) for number in range(1, 60_000)]
    each = b"\0" if kind == encode.DICT else b""
    log = _start()
    log.raw(b"\x04" + bytes((kind,)) + encode.varint(len(numbers)) + b"".join(number + each for number in numbers))
    path = Example(log=log.to_bytes()).write(tmp_path)

    with open_recording(path) as recording:
        begin = time.process_time()
        recording.check()

    assert time.process_time() - begin < 2
    assert "with the same hash" in recording.damage[0]


@pytest.mark.parametrize("section", ["log", "world", "content"])
def test_a_section_that_no_replay_would_take_is_damage(section: str, tmp_path: Path) -> None:
    path = tmp_path / "claim.rdbg"
    size = 1 << 30
    start = _start().to_bytes(committed=size) if section != "content" else b""
    _file(path, {section: _bomb(section, start, b"\0", size)})

    said = _assert_bounded("verify", path)

    assert f"Its section {section!r} claims" in said


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "info"])
def test_many_equal_answers_of_the_importer_are_refused(command: str, tmp_path: Path) -> None:
    """A recorder writes each answer once."""
    world = LogBuilder()
    record = encode.varint(16 << 2 | 2) + encode.text("stat") + encode.text("") + b"\1\0"
    size = LOG_HEADER + (60 << 20) // len(record) * len(record)
    path = tmp_path / "world.rdbg"
    _file(path, {"world": _bomb("world", world.to_bytes(committed=size), record, size)})

    said = _assert_bounded(command, path, code=None)

    assert "import world takes more work to read" in said
