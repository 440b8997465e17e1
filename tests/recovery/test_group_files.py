"""Files that a group appended to after its recovery line: what it appends again is cut off, and nothing else is."""

import json
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.recovery.killed_groups import record_killed, replaydbg

pytestmark = pytest.mark.slow

# The child answers each line; the second run continues before one of the writes.
_LINES = """import os, sys
asks, ask = os.pipe()
told, tell = os.pipe()
if not os.fork():
    os.close(ask)
    while data := os.read(asks, 100):
        os.write(tell, data.upper())
    os._exit(0)
{opened}
for number in range(8):
    os.write(ask, b"line %d\\n" % number)
    data = os.read(told, 100)
    {write}
open("ready", "w").close()
sys.stdin.readline()
os.close(ask)
os.wait()
"""
_WRITES = {
    "kept open": ("out = open('out', 'ab', buffering=0)", "out.write(data)"),
    "buffered": ("out = open('out', 'a')", "out.write(data.decode()), out.flush()"),
    "always at the end": ("out = os.open('out', os.O_CREAT | os.O_WRONLY | os.O_APPEND)", "os.write(out, data)"),
    "opened for each line": ("", "with open('out', 'a') as out: out.write(data.decode())"),
}
_WHOLE = "".join(f"LINE {number}\n" for number in range(8))


def _event_of_write(directory: Path, number: int) -> int:
    """Return the event of one of the writes of data that the first process made to a file."""
    with open_recording(directory / "1.rdbg") as recording:
        events = [each for each in recording.events() if isinstance(each, Event)]
    reads = [each.number for each in events if each.gate == "posix.read" and each.outcome == b"LINE %d\n" % number]
    return next(each.number for each in events if each.number > reads[0] and "write" in each.gate)


@pytest.mark.parametrize("how", _WRITES)
def test_what_is_written_again_is_cut_off(how: str, tmp_path: Path) -> None:
    opened, write = _WRITES[how]
    directory = record_killed(tmp_path, _LINES.format(opened=opened, write=write))
    cut = f"1@{_event_of_write(directory, 4) - 1}"

    plan = json.loads(replaydbg(tmp_path, "resume", "one", "--at-cut", cut, "--plan", "--json").stdout)
    resumed = replaydbg(tmp_path, "resume", "one", "--at-cut", cut, "-o", "two")

    assert [(each["path"], each["size"], each["found"]) for each in plan["cut_off"]] == [
        (str(tmp_path / "out"), 28, 56)
    ]
    assert resumed.status == 0, resumed
    assert f"truncated  {tmp_path / 'out'}: to 28 bytes (28 bytes removed)" in resumed.stderr.decode()
    assert (tmp_path / "out").read_text() == _WHOLE


def test_what_somebody_else_wrote_stays_a_difference(tmp_path: Path) -> None:
    opened, write = _WRITES["kept open"]
    directory = record_killed(tmp_path, _LINES.format(opened=opened, write=write))
    with (tmp_path / "out").open("a") as out:
        out.write("somebody else\n")

    refused = replaydbg(tmp_path, "resume", "one", "--at-cut", f"1@{_event_of_write(directory, 4) - 1}", "-o", "two")

    assert refused.status == 2, refused
    assert b"out is longer: 70 bytes, recorded 28" in refused.stderr
    assert (tmp_path / "out").read_text() == f"{_WHOLE}somebody else\n"


# Both append to one file in turn, and neither knows how long it is.
_TWO_APPEND = """import os, sys
out = os.open("out", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
turns, pass_on = os.pipe()
back, give_back = os.pipe()
if not os.fork():
    os.close(pass_on)
    while data := os.read(turns, 100):
        os.write(out, b"child " + data)
        os.write(give_back, data)
    os._exit(0)
for number in range(6):
    os.write(out, b"parent %d\\n" % number)
    os.write(pass_on, b"%d\\n" % number)
    os.read(back, 100)
open("ready", "w").close()
sys.stdin.readline()
os.close(pass_on)
os.wait()
"""


def test_writes_of_two_processes_are_cut_off(tmp_path: Path) -> None:
    directory = record_killed(tmp_path, _TWO_APPEND)
    whole = "".join(f"parent {number}\nchild {number}\n" for number in range(6))
    with open_recording(directory / "1.rdbg") as recording:
        read = [each for each in recording.events() if isinstance(each, Event) and each.outcome == b"3\n"]

    resumed = replaydbg(tmp_path, "resume", "one", "--at-cut", f"1@{read[0].number - 1}", "-o", "two")

    assert resumed.status == 0, resumed
    assert b"truncated" in resumed.stderr
    assert (tmp_path / "out").read_text() == whole
