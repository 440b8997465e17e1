"""The leaves of a log are its texts and bytes, whatever its pieces are, and damage ends them without harm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from replaydbg.events import values
from replaydbg.events.records import Event
from replaydbg.log.entries.leaves import RECORDED, Content, Leaf, LeafReader, leaves
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import bytes_behind
from replaydbg.log.reader import open_recording
from replaydbg.native._leaves import Walker
from tests.harness.build import LogBuilder
from tests.harness.recording import record_file
from tests.log.test_codec import VALUES

BUSY = """
import os, select, signal, threading, time
signal.signal(signal.SIGALRM, lambda *_: os.getcwd())
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
reader, writer = os.pipe()
def work():
    for number in range(20):
        os.write(writer, b"x" * number)
        try:
            os.stat("missing")
        except OSError:
            time.sleep(0.001)
threads = [threading.Thread(target=work) for _ in range(3)]
for each in threads: each.start()
for each in threads: each.join()
print(len(os.read(reader, 5000)), os.listdir("."), open(__file__).read(10), os.urandom(3) != b"")
sum(range(300_000))
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def texts_in(value: Any) -> Iterator[bytes]:
    """Yield the texts and bytes in a value."""
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes | bytearray):
        yield bytes(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (*texts_in(key), *texts_in(item))
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, values.Opaque):
        yield value.type_name.encode("utf-8", "surrogatepass")
    elif isinstance(value, values.DirectoryEntry):
        yield from texts_in([value.name, value.path])
    elif isinstance(value, values.StructSequence):
        yield from texts_in(value.values)
    elif isinstance(value, values.ExceptionValue):
        yield from texts_in([value.args, value.os_error])


def contents_in(value: Any) -> Iterator[tuple[int, int]]:
    """Yield the places of the contents in a value."""
    if isinstance(value, values.ContentRef):
        yield value.offset, value.offset + value.length
    elif isinstance(value, dict):
        yield from contents_in([*value, *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from contents_in(each)
    elif isinstance(value, values.StructSequence):
        yield from contents_in(value.values)
    elif isinstance(value, values.ExceptionValue):
        yield from contents_in([value.args, value.os_error])


def of_calls(log: bytes) -> list[bytes]:
    """Return the texts and bytes in what calls returned."""
    found, _, _ = Walker().walk(log)
    return [log[start:end] for kind, _, site, _, _, start, end in found if kind == RECORDED and site and start < end]


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@given(st.lists(VALUES, max_size=4), st.integers(1, 50))
def test_they_are_the_texts_of_all_values(recorded: list[Any], size: int) -> None:
    limit = (1 << 64) - 1  # behind it the log counts as damaged
    assume(all(end <= limit for value in recorded for _, end in contents_in(value)))
    log = LogBuilder()
    for each in recorded:
        log.crossing(1, each, arguments=("mode",))
    data = log.to_bytes()[LOG_HEADER:]

    found = list(leaves(in_pieces(data, size)))

    assert Counter(of_calls(data)) == Counter(each for value in recorded for each in texts_in(value) if each)
    assert found == list(leaves([data]))
    assert all(data[each.start : each.end] == each.data for each in found if isinstance(each, Leaf))
    assert Counter((each.start, each.end) for each in found if isinstance(each, Content)) == Counter(
        each for value in recorded for each in contents_in(value)
    )


@pytest.mark.slow
def test_they_are_those_of_a_real_log(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(BUSY)
    with open_recording(record_file(tmp_path / "busy.py", tmp_path)) as recording:
        log = b"".join(bytes_behind(LOG_HEADER, recording.pieces("log")))
        events = [each for each in recording.events() if isinstance(each, Event)]

    expected: Iterable[Any] = ([each.outcome, each.filled] for each in events)
    assert of_calls(log) == [each for pair in expected for each in texts_in(pair) if each]
    assert len(Walker().walk(log)[0]) > 100
    assert Walker().walk(log)[1] == len(log)


@given(st.binary(max_size=80), st.integers(0, 300), st.integers(0, 300), st.integers(1, 40))
def test_damage_does_no_harm(other: bytes, first: int, length: int, size: int) -> None:
    log = LogBuilder()
    outcomes: list[Any] = ["text", b"bytes", ["a", {"b": b"c"}], values.Opaque("x"), values.ContentRef(3, 4)]
    for outcome in outcomes:
        log.crossing(1, outcome, arguments=("mode", 3))
        log.crossing(3, 3, filled=b"abc")
    data = log.to_bytes()[LOG_HEADER:]
    data = data[:first] + other + data[first + length :]

    for each in leaves(in_pieces(data, size)):
        if isinstance(each, Leaf):
            assert data[each.start : each.end] == each.data
    found, end, needed = Walker().walk(data)
    assert 0 <= end <= len(data)
    assert needed >= 0
    assert all(start <= last <= len(data) for kind, _, _, _, _, start, last in found if kind == RECORDED)


def test_what_claims_more_than_there_is_ends_the_walk() -> None:
    huge = b"\xff" * 9 + b"\x01"
    for record in (b"\x08" + huge, b"\x06" + huge, b"\x0a" + huge, b"\x04" + huge):
        log = LogBuilder()
        log.crossing(0, "before")
        data = log.to_bytes()[LOG_HEADER:] + b"\x04" + record + b"x" * 50

        assert [each.data for each in leaves([data]) if isinstance(each, Leaf) and each.gate] == [b"before"]


def test_a_log_that_grows_is_read_on() -> None:
    log = LogBuilder()
    for number in range(50):
        log.crossing(0, f"text {number}")
    data = log.to_bytes()[LOG_HEADER:]

    reader = LeafReader()
    found: list[Leaf | Content] = []
    for piece in in_pieces(data, 7):
        found += reader.add(piece)
        reader.wait_for_no_more()
        found += reader.add(b"")

    assert found == list(leaves([data]))
