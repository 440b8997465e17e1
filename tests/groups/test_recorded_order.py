"""Starts, ends, signals and semaphores order the events of recorded processes, as messages do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.distributed.causal_order import AFTER, BEFORE, CONCURRENT
from replaydbg.distributed.edges import HappensBefore
from replaydbg.events.records import Event
from replaydbg.groups.causality import bare_edges, causal_order
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.reader import open_recording
from replaydbg.store.directory import member_path
from tests.harness import tool
from tests.harness.children import CHILDREN, PROGRAMS, RecordedGroup, completed, record_group
from tests.harness.process import run
from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


def _recorded(name: str) -> tuple[RecordedGroup, OpenedGroup]:
    case: Case = next(
        each.values[0] for each in cases("children", "order_of_processes") if each.values[0].args == (name,)
    )
    made = record_group(case)
    opened = OpenedGroup(made.directory)
    assert opened.problems == {}
    return made, opened


def _events(opened: OpenedGroup, process: int) -> dict[int, str]:
    """Return the functions that a process called, by the numbers of the events, without its parent's."""
    with open_recording(member_path(opened.directory, process)) as recording:
        branch = recording.header.branch
        first = branch.event if branch is not None else 1
        entries = recording.events(controls=False)
        return {each.number: each.site.gate for each in entries if isinstance(each, Event) and each.number >= first}


def _calls(opened: OpenedGroup, process: int, name: str) -> list[int]:
    return [number for number, gate in _events(opened, process).items() if gate == name]


def _edges(opened: OpenedGroup, kind: str) -> list[HappensBefore]:
    return [each for each in bare_edges(opened) if each.kind == kind]


def _places(found: list[HappensBefore]) -> list[tuple[int, int, int, int]]:
    return [each[:4] for each in found]


def test_signals_come_before_their_handlers() -> None:
    made, opened = _recorded("signals")

    (fork,) = _edges(opened, "start")
    (wait,) = _edges(opened, "end")
    to_child, to_parent = ([each for each in _edges(opened, "signal") if each.to_process == to] for to in (2, 1))
    stats = _calls(opened, 2, "posix.stat")
    assert fork[:4] == (1, _calls(opened, 1, "posix.fork")[0], 2, _calls(opened, 2, "posix.fork")[0])
    assert wait[:4] == (2, max(_events(opened, 2)), 1, _calls(opened, 1, "posix.waitpid")[0])
    sends = [_calls(opened, 1, "posix.kill")[0], _calls(opened, 1, "_signal.pidfd_send_signal")[0]]
    assert _places(to_child) == [(1, sends[0], 2, stats[0]), (1, sends[1], 2, stats[1])]  # and not its own one
    assert _places(to_parent) == [(2, _calls(opened, 2, "posix.kill")[0], 1, _calls(opened, 1, "posix.stat")[-1])]
    assert {each.signal for each in to_child} == {10}

    order = causal_order(opened)
    assert order.unordered == []
    assert order.order((1, sends[0]), (2, stats[0])) == BEFORE
    assert order.order((2, stats[0]), (1, sends[1])) == BEFORE  # by the byte between them
    assert order.order((2, max(_events(opened, 2))), (1, wait.to_event)) == BEFORE
    assert order.order((2, stats[2]), (1, sends[1])) == AFTER
    assert order.order((1, _calls(opened, 1, "posix.read")[1]), (2, stats[0])) == AFTER
    assert order.order((1, _calls(opened, 1, "posix.getuid")[0]), (2, stats[1])) == CONCURRENT
    made.scene.remove()


def test_a_signal_to_a_group_of_processes_reaches_its_members() -> None:
    made, opened = _recorded("group_of_processes")

    (kill,) = _calls(opened, 1, "posix.killpg")
    found = {each.to_process: (each.process, each.event) for each in _edges(opened, "signal")}
    assert found == {2: (1, kill), 3: (1, kill)}
    made.scene.remove()


def test_every_way_to_wait_for_a_process() -> None:
    made, opened = _recorded("ends")

    found = _edges(opened, "end")
    children = [each.number for each in made.recorded_processes() if each.parent == 1]
    assert sorted(each.process for each in found) == children
    assert len(children) == 7
    ends = {number: max(_events(opened, number)) for number in children}
    calls = _events(opened, 1)
    assert all(each.event == ends[each.process] and each.to_process == 1 for each in found)
    assert {calls[each.to_event].rpartition(".")[2] for each in found} == {
        "wait",
        "waitpid",
        "wait3",
        "waitid",
        "wait4",
    }
    made.scene.remove()


def test_the_handler_of_sigchld_comes_after_the_end_of_the_child() -> None:
    made, opened = _recorded("noticed_by_handler")

    (found,) = _edges(opened, "end")
    assert found[:4] == (2, max(_events(opened, 2)), 1, _calls(opened, 1, "posix.stat")[-1])
    assert _calls(opened, 1, "posix.waitpid")[0] > found.to_event
    made.scene.remove()


def test_ends_by_a_signal() -> None:
    made, opened = _recorded("killed_by_sibling")

    assert sorted((each.process, each.to_process) for each in _edges(opened, "end")) == [(2, 1), (3, 1)]
    assert _edges(opened, "signal") == []  # no handler ran
    made.scene.remove()


def test_multiprocessing_terminates_a_process() -> None:
    made, opened = _recorded("terminated")

    (found,) = _edges(opened, "signal")
    assert found[:2] == (1, _calls(opened, 1, "posix.kill")[0])
    assert (found.to_process, found.signal) == (2, 15)
    assert causal_order(opened).unordered == []
    made.scene.remove()


def test_a_lock_goes_from_process_to_process() -> None:
    made, opened = _recorded("lock")

    found = _edges(opened, "semaphore")
    releases, acquisitions = (
        {number: _calls(opened, number, f"_multiprocessing.SemLock.{name}") for number in (1, 2)}
        for name in ("release", "acquire")
    )
    assert _places(found) == [
        (2, releases[2][0], 1, acquisitions[1][1]),
        (1, releases[1][0], 2, acquisitions[2][0]),
    ]
    assert all(each.is_certain for each in found)
    made.scene.remove()


def test_a_file_is_read_after_it_was_written() -> None:
    made, opened = _recorded("files")

    found = _edges(opened, "file")
    (fork,) = _calls(opened, 1, "posix.fork")
    written = max(number for number in _calls(opened, 1, "_io.FileIO.close") if number < fork)
    opens = {number: _calls(opened, number, "_io.FileIO.__init__") for number in (1, 2)}
    assert _places(found) == [
        (2, _calls(opened, 2, "posix.close")[0], 1, opens[1][-2]),
    ]
    assert not any(each.is_certain for each in found)
    # The parent was alone when it wrote: all that it did before the fork comes first.
    assert causal_order(opened).order((1, written), (2, opens[2][0])) == BEFORE
    made.scene.remove()


def test_a_process_that_is_killed_leaves_whom_it_waited_for() -> None:
    made, opened = _recorded("waits_for_ever")

    (parent,) = [each for each in opened.matching.members if each.process == 2]
    ends = {each.number: each.own for each in parent.endpoints if each.kind == "process"}
    columns = parent.transfers
    waiting = [ends[number] for row, number in enumerate(columns.endpoint) if number in ends and not columns.event[row]]
    assert waiting == ["3"]
    made.scene.remove()


STARTS = """
import os
import subprocess
import sys

code = "import os; os.getppid()"
subprocess.run([sys.executable, "-c", code], check=True)
subprocess.run(f"{sys.executable} -c '{code}'; true", shell=True, check=True)
if not os.fork():
    os.execv(sys.executable, [sys.executable, "-c", code])
os.wait()
"""


def test_started_programs_come_after_the_call_that_started_them(tmp_path: Path) -> None:
    opened = _group(tmp_path, STARTS)

    rows = {each.number: each for each in opened.group.processes}
    starts = {each.to_process: each for each in _edges(opened, "start")}
    ways = ("_posixsubprocess.fork_exec", "posix.posix_spawn")  # newer versions use the second
    first, second = (number for name in ways for number in _calls(opened, 1, name))
    by_parent = {number: each for number, each in starts.items() if rows[number].how == "python"}
    assert [each[:2] for _, each in sorted(by_parent.items())] == [(1, first), (1, second)]
    assert all(each.to_event == 1 for each in by_parent.values())
    (replaced,) = [each for number, each in starts.items() if rows[number].how == "exec"]
    assert replaced[:2] == (replaced.process, max(_events(opened, replaced.process)))
    ends = {each.process: each.to_event for each in _edges(opened, "end")}
    assert set(ends) == {min(by_parent), replaced.to_process}  # nobody knows how the shell's child ended
    order = causal_order(opened)
    assert order.order((replaced.to_process, 1), (1, _calls(opened, 1, "posix.wait")[0])) == BEFORE
    assert order.order((1, first), (min(by_parent), 1)) == BEFORE
    assert order.order((1, second), (min(by_parent), 1)) == AFTER


def _group(tmp_path: Path, source: str) -> OpenedGroup:
    program = tmp_path / "prog.py"
    program.write_text(source)
    command = tool.record(sys.executable, tmp_path / "made", [str(program)], options=PROGRAMS)
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    completed(tmp_path / "made.rdbgs")
    return OpenedGroup(tmp_path / "made.rdbgs")


FORK = """
import os
if not os.fork():
    os._exit(0)
os.wait()
"""


def test_channels_lists_what_orders_processes(tmp_path: Path) -> None:
    opened = _group(tmp_path, FORK)
    fork, wait, last = _calls(opened, 1, "posix.fork")[0], _calls(opened, 1, "posix.wait")[0], max(_events(opened, 2))

    lines, found = (_channels(tmp_path, option) for option in ("--edges", "--json"))

    assert lines == f"end\t2@{last}\t1@{wait}\tcertain\nstart\t1@{fork}\t2@{fork}\tcertain\n"
    expected = {"kind": "end", "signal": None, "process": 2, "event": last, "begun": last}
    expected |= {"to_process": 1, "to_event": wait, "is_certain": True}
    assert json.loads(found)["edges"][0] == expected


def _channels(tmp_path: Path, option: str) -> str:
    command = [sys.executable, "-m", "replaydbg", "channels", option, str(tmp_path / "made.rdbgs")]
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.parametrize("case", cases("children", "transfers"))
def test_the_clocks_of_all_channels_contradict_nothing(case: Case) -> None:
    made = record_group(case, CHILDREN)
    opened = OpenedGroup(made.directory)

    order = causal_order(opened)

    assert order.unordered == []
    for process, event, ticket in _tickets(opened, {"send"}):
        for other, number, later in _tickets(opened, {"receive"}):
            if other != process and later and later < ticket:
                assert order.order((process, event), (other, number)) != BEFORE
    made.scene.remove()


def _tickets(opened: OpenedGroup, ways: set[str]) -> Iterator[tuple[int, int, int]]:
    for member in opened.matching.members:
        for each in member.transfers.transfers():
            if each.way in ways and (each.event or each.way == "send"):
                yield member.process, each.begun + 1 if each.way == "send" else each.event, each.ticket
