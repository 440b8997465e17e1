"""`doctor --trace`: equal runs are equal tick by tick; a call that only one of the two makes is found and named."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replaydbg.trace.compare import compare, insides
from replaydbg.trace.trace_files import Code, Kind, TraceEnd, TraceFiles
from tests.harness.replays import passed_on

PING_PONG = """
import queue, threading
there, back = queue.Queue(), queue.Queue()
def worker():
    for _ in range(200):
        back.put(there.get() + 1)
thread = threading.Thread(target=worker)
thread.start()
number = 0
for _ in range(200):
    there.put(number)
    number = back.get()
thread.join()
assert number == 200
"""
COMPUTING = """
import threading
order = []
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def work(name):
    for _ in range(3):
        order.append((name, fib(16)))
threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
# The sleeps are timers of different length, which order the tasks.
TWO_LOOPS = """
import asyncio, threading, time
order = []
async def task(name, times):
    for number in range(times):
        await asyncio.sleep(0.001 * (number % 3))
        order.append((name, number))
    await asyncio.to_thread(order.append, name)
async def main(name):
    await asyncio.gather(*(task((name, number), 6) for number in range(4)))
threads = [threading.Thread(target=asyncio.run, args=(main(name),)) for name in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
# The interpreter requests the number in the middle of the real call, which a replay does not make.
ONE_CALL_MORE = """import os
asked = []
class Descriptor:
    def __index__(self):
        asked.append(1)
        return reader
def later(): return 1
reader, writer = os.pipe()
os.write(writer, b"x")
os.read(Descriptor(), 1)
for _ in asked: later()
for _ in range(3): later()
os.write(1, b"the end")
"""


def traced(directory: Path, source: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Run `doctor --trace --json`; return its exit code and its output."""
    program = directory / "program.py"
    program.write_text(source)
    command = [sys.executable, "-m", "replaydbg", "doctor", "--json", "--trace", *options, "--", str(program)]
    env = passed_on() | {"PATH": "/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8"}
    done = subprocess.run(command, env=env, cwd=directory, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--chaos", "3", "--replays", "3")])
@pytest.mark.parametrize(("source", "lanes"), [(PING_PONG, 2), (COMPUTING, 5), (TWO_LOOPS, None)])
def test_threads_are_equal_tick_by_tick(
    tmp_path: Path, source: str, lanes: int | None, options: tuple[str, ...]
) -> None:
    code, found = traced(tmp_path, source, *options)

    assert (code, found["equal"], found["difference"], found["divergence"]) == (0, True, None, None)
    assert found["ending"] == "whole"
    assert found["ticks"] > 2000
    assert lanes is None or found["threads"] == lanes
    assert found["inside"] == []
    # A recording without findings is deleted.
    assert not list(tmp_path.rglob("*.rdbg"))


@pytest.mark.slow
def test_a_call_that_only_the_recording_makes_is_found_and_named(tmp_path: Path) -> None:
    code, found = traced(tmp_path, ONE_CALL_MORE)

    assert (code, found["equal"]) == (1, False)
    program = str(tmp_path / "program.py")
    assert [(each["callee"], each["file"], each["function"], each["line"]) for each in found["inside"]] == [
        ("posix.read", program, "Descriptor.__index__", 4)
    ]
    assert (found["inside"][0]["recorded"], found["inside"][0]["replayed"]) == (1, 0)
    difference = found["difference"]
    # Each iteration of a loop is a tick.
    assert difference["recorded"]["line"] == 11
    assert difference["replayed"]["line"] == 12
    assert difference["event"] == found["inside"][0]["first_event"] + 1
    assert len(list(tmp_path.rglob("*.rdbg"))) == 1


@pytest.mark.slow
def test_the_report_is_in_words(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ONE_CALL_MORE)
    command = [sys.executable, "-m", "replaydbg", "doctor", "--trace", str(program)]
    env = passed_on() | {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stderr
    assert f"  recorded  thread 0: {program}:" in done.stdout
    assert "  inside posix.read, in the recording only, first after event " in done.stdout
    assert f"    {program}:4 in Descriptor.__index__, once\n" in done.stdout
    assert "The recording is kept: run-1\n" in done.stdout


@pytest.mark.slow
def test_a_trace_is_cut_at_its_limit(tmp_path: Path) -> None:
    code, found = traced(tmp_path, "for n in range(200_000): pass\n", "--trace-limit", "200K")

    assert (code, found["equal"], found["ending"]) == (0, True, "limit")
    assert 10_000 < found["ticks"] < 200_000


@pytest.mark.slow
def test_the_program_goes_as_without_a_trace(tmp_path: Path) -> None:
    """The numbers of its descriptors and, where ticks need no trace function, the collector's state are the same."""
    program = tmp_path / "program.py"
    program.write_text(
        "import gc, os, sys\n"
        "print(os.open('.', 0), sys.gettrace(), len(gc.get_objects()) if sys.version_info >= (3, 12) else '')\n"
    )
    env = passed_on() | {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    plain, with_trace = (
        subprocess.run(
            [sys.executable, "-m", "replaydbg", *words, str(program)], env=env, capture_output=True, check=True
        ).stdout
        for words in (["record", "-q"], ["doctor", "--trace"])
    )

    assert plain.startswith(b"3 None")
    assert with_trace.splitlines()[0] == plain.splitlines()[0]


def write_trace(directory: Path, blocks: list[bytes], codes: bytes = b"") -> TraceFiles:
    """Write the files of a trace."""
    directory.mkdir()
    (directory / "ticks").write_bytes(b"".join(blocks))
    (directory / "codes").write_bytes(codes)
    return TraceFiles(directory)


def block(records: bytes, ticks: int = 0, events: int = 0) -> bytes:
    """Return one block."""
    head = ticks.to_bytes(8, "little") + events.to_bytes(8, "little") + bytes(8)
    return (head + (32 + len(records)).to_bytes(4, "little") + bytes(4) + records).ljust(1 << 16, b"\0")


EVENT, END_OF_ONE_LANE = bytes([5 << 2 | 1]), bytes([1 << 4 | 3])


def test_a_killed_run_is_compared_as_far_as_it_was_written(tmp_path: Path) -> None:
    one = write_trace(tmp_path / "one", [block(EVENT * 2)])
    other = write_trace(tmp_path / "other", [block(EVENT * 2), block(EVENT + END_OF_ONE_LANE, events=2)])

    found = compare(one, other)

    assert (found.difference, found.events, found.ending) == (None, 2, TraceEnd.KILLED)


def test_an_event_more_is_a_difference(tmp_path: Path) -> None:
    one = write_trace(tmp_path / "one", [block(EVENT), block(EVENT + END_OF_ONE_LANE, events=1)])
    other = write_trace(tmp_path / "other", [block(EVENT), block(EVENT * 2 + END_OF_ONE_LANE, events=1)])

    found = compare(one, other)

    assert found.difference is not None
    assert found.difference.event == 2
    assert found.difference.gate == 5
    assert found.difference.recorded.item is not None
    assert found.difference.recorded.item.kind is Kind.END
    assert len(found.difference.common) == 2
    assert insides(one, other) == ()


def test_lines_of_instructions() -> None:
    # Two units of line 10, three of none, one of line 8.
    code = Code("f.py", "f", 10, bytes([2, 20, 3, 19, 1, 16]))

    assert [code.line(unit) for unit in range(6)] == [10, 10, 10, 10, 10, 8]
