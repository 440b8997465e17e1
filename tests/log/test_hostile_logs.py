"""Recordings with correct checksums and invalid records: a replay ends with a sentence, whatever they claim.

Each takes a genuine recording of one program and replaces the outcome of a call by other bytes, or inserts records
between two events.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.coding.encode import encode_value, text, varint
from replaydbg.log.container import seal
from replaydbg.log.entries.logfile import LOG_HEADER, pack_log_header, read_log_header
from replaydbg.log.entries.raw import RawRecord
from replaydbg.log.reader import open_recording
from tests.harness.measured import measured
from tests.harness.recording import record_file
from tests.harness.sanitizer import SLOWER
from tests.harness.surroundings import without_steering

_PROGRAM = """import mmap, os, select, socket, tempfile, threading, time
print(time.time())
print(os.stat(".").st_size)
print(os.times())
one, other = socket.socketpair()
one.send(b"x")
print(len(select.select([other], [], [], 5)[0]), other.recv_into(bytearray(4)))
with select.epoll() as poll:
    print(poll.poll(0))
for entry in os.scandir("/proc/self/fd"):
    print(len(entry.name) > 0)
    break
with tempfile.TemporaryFile() as file:
    file.write(bytes(5000))
    file.flush()
    with mmap.mmap(file.fileno(), 0) as shared:
        print(shared[0])
thread = threading.Thread(target=time.sleep, args=(0.001,))
thread.start()
thread.join()
try:
    os.stat("/nonexistent")
except OSError as error:
    print(error)
print("end", time.time())
"""
_MOST_MEMORY = 1 << 30
_SECONDS = 30.0 * SLOWER  # ten on an idle machine

_TUPLE, _LIST, _STRUCT, _EXCEPTION = b"\x08", b"\x09", b"\x0b", b"\x12"
_MUCH = varint(20_000_000)
_LAST = varint((1 << 64) - 1)

Change = Callable[[list[RawRecord]], list[bytes]]


def _type(module: str, name: str) -> bytes:
    return varint(3 << 2 | 3) + text(module) + text(name)


def _control(number: int, *payload: bytes) -> bytes:
    return varint(number << 2 | 2) + b"".join(payload)


def _types(records: list[RawRecord]) -> int:
    return sum(each.entry is None and each.data[0] == 3 << 2 | 3 for each in records)


def _outcome(gate: str, value: bytes, *, raises: bool = False, names: tuple[str, str] | None = None) -> Change:
    """Replace the first outcome of `gate` by `value`; `names`: its tag is followed by the number of that type."""

    def change(records: list[RawRecord]) -> list[bytes]:
        at = next(
            at for at, each in enumerate(records) if isinstance(each.entry, Event) and each.entry.site.gate == gate
        )
        event = records[at].entry
        assert isinstance(event, Event)
        head, length = records[at].data, len(records[at].data)
        # The part before the outcome is found by its own length: the outcome, and what was filled, are at the end.
        behind = b"" if event.filled is None else encode_value(event.filled)
        old = next(n for n in range(1, length) if _is_outcome(head[n:], behind, event))
        data = bytes((head[0] & 0xFC | raises,)) + head[1:old]
        new = value[:1] + varint(_types(records[:at]) + 1) + value[1:] if names is not None else value
        defined = [_type(*names)] if names is not None else []
        before, after = ([each.data for each in part] for part in (records[:at], records[at + 1 :]))
        return [*before, *defined, data + new + behind, *after]

    return change


def _is_outcome(data: bytes, behind: bytes, event: Event) -> bool:
    try:
        return data == encode_value(event.outcome, lambda name: 1) + behind or (
            data[:1] in (_STRUCT, _EXCEPTION, b"\x0c", _TUPLE, _LIST) and data[:1] == _tag(event)
        )
    except TypeError:
        return False


def _tag(event: Event) -> bytes:
    return encode_value(event.outcome, lambda name: 1)[:1]


def _before(gate: str, *records: bytes) -> Change:
    """Insert records before the first event of `gate`."""

    def change(found: list[RawRecord]) -> list[bytes]:
        at = next(at for at, each in enumerate(found) if isinstance(each.entry, Event) and each.entry.site.gate == gate)
        return [each.data for each in found[:at]] + list(records) + [each.data for each in found[at:]]

    return change


def _padded(change: Change) -> Change:
    return lambda records: [*change(records), _control(4, encode_value(("x", "y" * 30_000_000)))]


_CLOCK = "time.time"
_CASES = {
    "nested claims": _padded(_outcome(_CLOCK, (_TUPLE + _MUCH) * 60)),
    "nested lists": _padded(_outcome(_CLOCK, (_LIST + _MUCH) * 60)),
    "a claim of everything": _outcome(_CLOCK, _TUPLE + _LAST),
    "text longer than the log": _outcome(_CLOCK, b"\x06" + _LAST),
    "deep nesting": _outcome(_CLOCK, _TUPLE * 1 + (b"\x01" + _TUPLE) * 5000 + b"\x00"),
    "a struct sequence of no such type": _outcome(_CLOCK, _STRUCT + _LAST, names=("builtins", "int")),
    "a struct sequence of a huge length": _outcome(_CLOCK, _STRUCT + _LAST, names=("posix", "times_result")),
    "an exception that is none": _outcome(
        _CLOCK,
        _EXCEPTION + encode_value((3_000_000_000,)) + b"\x00",
        raises=True,
        names=("builtins", "bytearray"),
    ),
    "a type with a zero in its name": _outcome(
        _CLOCK,
        _EXCEPTION + encode_value(()) + b"\x00",
        raises=True,
        names=("thread" + "\0" * 16, "lock"),
    ),
    "an exception with attributes that are none": _outcome(
        _CLOCK,
        _EXCEPTION + encode_value((2, "x")) + encode_value((2, "x", None, None, 5)),
        raises=True,
        names=("builtins", "OSError"),
    ),
    "an argument that is not there": _outcome(_CLOCK, b"\x0d" + varint(1 << 40)),
    "content that is not there": _outcome(_CLOCK, b"\x13" + _LAST + _LAST),
    "what is ready is no list": _outcome("select.select", encode_value((1, 2, 3))),
    "what is ready is too little": _outcome("select.select", encode_value(([],))),
    "what is ready is a number": _outcome("select.select", encode_value(7)),
    "sockets of no fields": _outcome("_socket.socketpair", encode_value(((), ()))),
    "sockets of one field": _outcome("_socket.socketpair", encode_value(((1,), 5))),
    "a poll object of an impossible number": _outcome("select.epoll.__new__", encode_value(1 << 30)),
    "a file of an impossible number": _outcome("posix.open", encode_value(1 << 30)),
    "a map of an impossible length": _outcome("mmap.mmap.__new__", encode_value(((1 << 62) + 5, 1))),
    "a lane that is not there": _before(_CLOCK, _control(5, varint(1 << 31), varint(1), varint(0))),
    "a lane that begins nowhere": _before(_CLOCK, _control(9, varint(1 << 40), text("x"))),
    "memory of no map": _before(_CLOCK, _control(8, varint(14), varint(0), text("abc"))),
    "memory outside of its map": _before("_io.FileIO.close", _control(8, varint(2), varint(1 << 60), text("abc"))),
    "a signal of no number": _before(_CLOCK, _control(0, varint(1 << 31))),
    "a signal between of many levels": _before(
        _CLOCK, _control(1, varint(14), bytes(8), varint(0), varint(0), varint(1 << 61))
    ),
    "a callback of nothing": _before(_CLOCK, _control(10, encode_value(5))),
    "a callback of an empty tuple": _before(_CLOCK, _control(10, encode_value(()))),
    "an unknown record": _before(_CLOCK, _control(63, b"")),
    "a site of an undefined code": _before(_CLOCK, varint(1 << 2 | 3) + varint(1) + _LAST + varint(0) * 3),
    "a code cut off": _before(_CLOCK, varint(0 << 2 | 3) + _LAST),
    "an event of no site": _before(_CLOCK, varint((1 << 40) << 2)),
}


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("genuine")
    (folder / "program.py").write_text(_PROGRAM)
    return record_file(folder / "program.py", folder)


def _changed(genuine: Path, folder: Path, change: Change) -> Path:
    live = folder / "hostile.rdbg-live"
    live.mkdir()
    with open_recording(genuine) as recording:
        for name in recording.sections:
            place = live / {"header": "header.json"}.get(name, name)
            if name not in ("log", "end", "index"):
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(recording.section(name))
        log = b"".join(change(list(recording.records())))
        header = read_log_header(recording.section("log"))
        assert header is not None
        end = json.loads(recording.section("end"))
    (live / "log").write_bytes(pack_log_header(header._replace(committed=LOG_HEADER + len(log))) + log)
    target = folder / "hostile.rdbg"
    seal(live, target, end)
    return target


@pytest.mark.parametrize("case", _CASES)
def test_a_replay_ends_with_one_report(genuine: Path, tmp_path: Path, case: str) -> None:
    hostile = _changed(genuine, tmp_path, _CASES[case])
    before = {each.name for each in tmp_path.iterdir()}
    command = [sys.executable, "-m", "replaydbg", "replay", str(hostile)]

    done = measured(command, cwd=tmp_path, env=without_steering(os.environ))

    said = done.stderr
    assert done.status == 4, said
    assert said.count("Replay diverged in thread") == 1, said
    assert "status -" not in said, said  # no signal ended it
    assert "Fatal Python error" not in said, said
    assert done.peak < _MOST_MEMORY, done
    assert done.cpu < _SECONDS, done
    assert {each.name for each in tmp_path.iterdir()} == before


def test_escape_sequences_of_names_do_not_reach_the_terminal(genuine: Path, tmp_path: Path) -> None:
    hostile = _changed(genuine, tmp_path, _outcome("posix.stat", _TUPLE + _LAST))
    escaped = tmp_path / "escape\x1b]0;x\x07.rdbg"
    hostile.rename(escaped)

    done = subprocess.run(
        [sys.executable, "-m", "replaydbg", "replay", str(escaped)],
        cwd=tmp_path,
        env=without_steering(os.environ),
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 4
    assert b"\x1b" not in done.stderr
    assert b"\\x1b]0;x" in done.stderr
