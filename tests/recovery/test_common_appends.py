"""Several processes append to one file: it goes on where all of them together had ended it."""

import os
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.recovery.common_appends import find_end
from replaydbg.resources.kinds import Descriptor, Handle, LastFileWrite, MakingCall, OpenedFile, Resources
from replaydbg.resume.calls.situation import Situation
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.digest import output_digest
from replaydbg.resume.findings import CallVerdict
from replaydbg.resume.in_flight import examine
from tests.recovery.killed_groups import record_killed, replaydbg

# Each waits for its turn: the lines alternate, and the log of neither process shows those of the other one.
_TURNS = """import fcntl, os, sys
turns, pass_on = os.pipe()
back, give_back = os.pipe()
{before}
is_child = os.fork() == 0
mine, other = (turns, give_back) if is_child else (back, pass_on)
os.close(pass_on if is_child else give_back)
{after}
name = "child" if is_child else "parent"
for number in range(4):
    if is_child or number:
        os.read(mine, 1)
    {write}
    os.write(other, b".")
if is_child:
    os.read(mine, 1)
    os._exit(0)
os.read(mine, 1)
open("ready", "w").close()
sys.stdin.readline()
{write}
os.close(other)
os.wait()
"""
_OPEN = "out = open('out', 'a')"
_WRITE = "out.write(f'{name} {number}\\n'), out.flush()"
_LOCKED = f"fcntl.lockf(out, fcntl.LOCK_EX), {_WRITE}, out.tell(), fcntl.lockf(out, fcntl.LOCK_UN)"
_LOGGING = "import logging; logging.basicConfig(filename='out', format='%(message)s', level=20)"
_PROGRAMS = {
    "opened after the fork": ("", _OPEN, _WRITE),
    "opened before the fork": (_OPEN, "", _WRITE),
    "not buffered": ("", "out = open('out', 'ab', buffering=0)", "out.write(f'{name} {number}\\n'.encode())"),
    "locked for each write": ("", "out = open('out', 'a+')", _LOCKED),
    "logging": (_LOGGING, "", "logging.info('%s %d', name, number)"),
}
_WHOLE = "".join(f"parent {number}\nchild {number}\n" for number in range(4))


@pytest.mark.slow
@pytest.mark.parametrize("how", _PROGRAMS)
def test_a_file_of_several_processes_goes_on(how: str, tmp_path: Path) -> None:
    before, after, write = _PROGRAMS[how]
    record_killed(tmp_path, _TURNS.format(before=before, after=after, write=write))

    plan = replaydbg(tmp_path, "resume", "one", "--plan").stdout.decode()
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert "files: " in plan
    assert "differs" not in plan
    assert resumed.status == 0, resumed
    assert (tmp_path / "out").read_text() == f"{_WHOLE}parent 3\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", _PROGRAMS)
def test_what_several_processes_append_again_is_cut_off(how: str, tmp_path: Path) -> None:
    before, after, write = _PROGRAMS[how]
    directory = record_killed(tmp_path, _TURNS.format(before=before, after=after, write=write))
    with open_recording(directory / "1.rdbg") as recording:
        reads = [each.number for each in recording.events() if isinstance(each, Event) and each.outcome == b"."]

    resumed = replaydbg(tmp_path, "resume", "one", "--at-cut", f"1@{reads[1]}", "-o", "two")

    assert resumed.status == 0, resumed
    assert b"truncated" in resumed.stderr
    assert (tmp_path / "out").read_text() == f"{_WHOLE}parent 3\n"


@pytest.mark.slow
def test_the_plan_shows_what_somebody_else_appended(tmp_path: Path) -> None:
    record_killed(tmp_path, _TURNS.format(before="", after=_OPEN, write=_WRITE))
    with (tmp_path / "out").open("a") as out:
        out.write("somebody else\n")

    plan = replaydbg(tmp_path, "resume", "one", "--plan").stdout.decode()
    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    difference = f"{tmp_path / 'out'} is longer: 82 bytes, recorded 68"
    assert difference in plan
    assert refused.status == 2, refused
    assert difference in refused.stderr.decode()


@pytest.mark.slow
def test_the_plan_shows_that_a_last_write_is_missing(tmp_path: Path) -> None:
    record_killed(tmp_path, _TURNS.format(before="", after=_OPEN, write=_WRITE))
    (tmp_path / "out").write_text(_WHOLE.replace("parent 3", "parent 4"))

    plan = replaydbg(tmp_path, "resume", "one", "--plan").stdout.decode()
    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    difference = f"{tmp_path / 'out'} does not end with what was written last"
    assert difference in plan
    assert refused.status == 2, refused
    assert difference in refused.stderr.decode()


def _write(event: int, data: bytes) -> LastFileWrite:
    return LastFileWrite(event, 0, len(data), output_digest(data))


@pytest.mark.parametrize("order", ["ababa", "aaabb", "bbaaa", "abbaa"])
def test_each_order_of_the_processes_fits(order: str, tmp_path: Path) -> None:
    writes = {
        1: [_write(each, b"a%d" % each) for each in range(3)],
        2: [_write(each, b"b%d" % each) for each in range(2)],
    }
    counts = {"a": 0, "b": 0}
    whole = b"before "
    for each in order:
        whole += b"%s%d" % (each.encode(), counts[each])
        counts[each] += 1
    (tmp_path / "out").write_bytes(whole)

    found = find_end(str(tmp_path / "out"), writes, 0)

    assert found is not None
    assert found.size == len(whole)
    assert found.places[1, 2] == whole.index(b"a2")
    assert found.places[2, 1] == whole.index(b"b1")


def test_the_end_is_before_a_write_in_flight(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"b0a0not in any log")

    found = find_end(str(tmp_path / "out"), {1: [_write(1, b"a0")], 2: [_write(1, b"b0")]}, 0)

    assert found is not None
    assert found.size == 4


def test_an_order_that_no_log_allows_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"a1a0b0")

    found = find_end(str(tmp_path / "out"), {1: [_write(1, b"a0"), _write(2, b"a1")], 2: [_write(1, b"b1")]}, 0)

    assert found is None


@pytest.mark.timeout(60)
def test_equal_lines_at_every_place_end_the_search(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x\n" * 40_000)
    equal = [_write(each, b"x\n") for each in range(5_000)]

    assert find_end(str(tmp_path / "out"), {1: equal, 2: equal, 3: [_write(1, b"y\n")]}, 0) is None


def _call(data: bytes) -> CallInFlight:
    return CallInFlight(0, "", "_io.FileIO.write", True, 3, (), {}, data, len(data), "", 0, "")


def _appending(path: Path, size: int) -> Resources:
    handle = Handle((Descriptor(3, MakingCall(1, 0, None), True, None),), MakingCall(1, 0, None), os.O_APPEND | 1, ())
    opened = OpenedFile(handle, str(path), str(path), True, size, size, False, None)
    return Resources(5, "/", (opened,), (), (), (), (), (), (), None, (), (), (), ())


@pytest.mark.parametrize(
    ("on_disk", "verdicts"),
    [
        (b"", [CallVerdict.REPEAT, CallVerdict.REPEAT]),
        (b"of one", [CallVerdict.DONE, CallVerdict.REPEAT]),
        (b"of the other", [CallVerdict.REPEAT, CallVerdict.DONE]),
        (b"of the otherof one", [CallVerdict.DONE, CallVerdict.DONE]),
        (b"of somebody else", [CallVerdict.CHANGED, CallVerdict.CHANGED]),
    ],
)
def test_writes_in_flight_of_two_processes(on_disk: bytes, verdicts: list[CallVerdict], tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before" + on_disk)
    calls = [_call(b"of one"), _call(b"of the other")]
    situation = Situation(_appending(path, 6), 0, appended={str(path): calls})

    assert [examine([each], situation)[0][0].verdict for each in calls] == verdicts


def test_a_write_in_flight_to_a_truncated_file_is_made(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before, and what another process writes again")
    situation = Situation(_appending(path, 6), 0, truncated=frozenset({str(path)}))

    findings, moved = examine([_call(b"of one")], situation)

    assert [each.verdict for each in findings] == [CallVerdict.REPEAT]
    assert moved == {3: 0}
