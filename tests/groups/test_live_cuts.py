"""Cuts that are taken while a group runs are consistent, and those that the search over its recordings finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.cli.main import main
from replaydbg.distributed.live_cuts import positions_at
from replaydbg.events.transfers import Endpoint
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import ends_have_tickets, require_ends
from replaydbg.groups.live_cuts import LiveCuts
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.group import FACTS, read_group, write_group
from replaydbg.log.live_cuts import CUTS, LONGEST_NAME, LiveCut, line_of, read_live_cuts
from tests.groups.group_builder import received, sent, write_run
from tests.groups.test_cut_ends import PIPE, SHUTDOWNS
from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.process import run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

BANK = Path(__file__).parents[2] / "fixtures" / "cuts" / "bank.py"
ASKS = """\
import os
import replaydbg

asked, ask = os.pipe()
answered, answer = os.pipe()
if not os.fork():
    for _ in range(20):
        os.write(answer, os.read(asked, 3))
    replaydbg.cut("the child has ended")
    os._exit(0)
for number in range(20):
    os.write(ask, b"%03d" % number)
    replaydbg.cut(f"asked {number}")
    os.read(answered, 3)
os.wait()
"""
BROKEN = """\
import os, signal, socket
reading, writing = os.pipe()
one, other = socket.socketpair()
ready, go = os.pipe()
if os.fork() == 0:
    os.close(reading)
    other.close()
    os.write(go, b"1")
    os._exit(0)
os.close(reading)
one.close()
os.read(ready, 1)
for send in (lambda: os.write(writing, b"x"), lambda: other.sendall(b"x")):
    try:
        send()
    except BrokenPipeError:
        pass
    os.getpid()
os.wait()
"""
THREADS = """\
import os, threading
pipes = [os.pipe() for _ in range(4)]
if os.fork() == 0:
    for reading, writing in pipes:
        os.close(writing)
    for reading, writing in pipes:
        while os.read(reading, 10):
            pass
        os.getpid()
    os._exit(0)
def fill(reading, writing):
    os.close(reading)
    for _ in range(5):
        os.write(writing, b"x")
        os.getpid()
    os.close(writing)
threads = [threading.Thread(target=fill, args=each) for each in pipes]
for each in threads:
    each.start()
for each in threads:
    each.join()
os.wait()
"""
LOCKS = """\
import fcntl, os
event = os.eventfd(0)
for _ in range(3):
    if os.fork() == 0:
        for at in range(6):
            with open("shared", "a") as file:
                fcntl.flock(file, fcntl.LOCK_SH if at % 3 == 0 else fcntl.LOCK_EX)
                os.getpid()
                if at % 2:
                    fcntl.lockf(file, fcntl.LOCK_EX)
            os.eventfd_write(event, 1)
        os._exit(0)
count = 0
while count < 18:
    count += os.eventfd_read(event)
for _ in range(3):
    os.wait()
"""


def record(tmp_path: Path, words: list[str], *options: str) -> Path:
    command = tool.record(sys.executable, tmp_path / "made", words, options=(*CHILDREN, *options))
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    completed(tmp_path / "made.rdbgs")
    return tmp_path / "made.rdbgs"


def cut(capsys: pytest.CaptureFixture[str], group: Path, *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["cut", "--json", str(group), *words])
    return code, json.loads(capsys.readouterr().out)


def test_cuts_that_the_program_takes_are_where_it_stood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prog.py").write_text(ASKS)
    group = record(tmp_path, ["prog.py"])

    code, data = cut(capsys, group, "--live")

    assert code == 0
    assert {each["name"] for each in data["cuts"]} == {"the child has ended", *(f"asked {n}" for n in range(20))}
    assert all(each["positions"][str(each["process"])] == each["position"] for each in data["cuts"])
    for each in data["cuts"]:
        asked, answered = each["channels"]
        assert each["differences"] == []
        if each["name"] != "the child has ended":
            number = int(each["name"].split()[1])
            # It has asked, and not read the answer.
            assert (asked["sent"], answered["received"]) == (3 * (number + 1), 3 * number)


def test_a_cut_is_shown_with_its_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prog.py").write_text(ASKS)
    group = record(tmp_path, ["prog.py"])

    code, data = cut(capsys, group, "--live-cut", "asked 7", "--bytes")

    assert code == 0
    assert data["live"]["name"] == "asked 7"
    assert [bytes.fromhex(each["content"]) for each in data["in_flight"]] == [b"007"]


def test_its_replays_take_none(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(ASKS)
    group = record(tmp_path, ["prog.py"])
    before = (group / FACTS).read_bytes()

    done = run(
        [sys.executable, "-m", "replaydbg", "replay", "-q", str(group)], cwd=tmp_path, env=dict(os.environ), timeout=100
    )

    assert done.status == 0
    assert (group / FACTS).read_bytes() == before
    assert not (group / CUTS).exists()


def test_cuts_at_an_interval_are_consistent_and_equal_byte_for_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = record(tmp_path, [str(BANK), "60"], "--cut-every=5ms")

    code, data = cut(capsys, group, "--live")

    assert len(data["cuts"]) > 5
    assert (code, [each["differences"] for each in data["cuts"] if each["differences"]]) == (0, [])


def differences_at_every_value(group: Path) -> tuple[int, list[tuple[int, tuple[str, ...]]]]:
    """Return how many values the clock had, and at which ones a live cut differs from the latest consistent cut."""
    cuts = GroupCuts(OpenedGroup(group))
    assert ends_have_tickets(cuts)
    assert require_ends(cuts) == ""
    tickets = sorted({ticket for member in cuts.opened.matching.members for ticket in member.transfers.ticket})
    live = LiveCuts(cuts)
    live.__dict__["taken"] = tuple(LiveCut(each, 0, 0, 0, "") for each in (0, *tickets))
    checked = [live.checked(number) for number in range(1, len(live.taken) + 1)]
    return len(checked), [(each.live.ticket, each.differences) for each in checked if each.differences]


def test_every_value_of_the_clock_is_a_consistent_cut(tmp_path: Path) -> None:
    group = record(tmp_path, [str(BANK), "60"])

    count, different = differences_at_every_value(group)

    assert count > 300
    assert different == []


ORDERING = {"shutdowns": SHUTDOWNS, "pipe": PIPE, "broken": BROKEN, "threads": THREADS, "locks": LOCKS}


@pytest.mark.parametrize("kind", ORDERING)
def test_the_clock_knows_of_ends_of_streams_connections_locks_and_eventfds(tmp_path: Path, kind: str) -> None:
    (tmp_path / "prog.py").write_text(ORDERING[kind])
    group = record(tmp_path, ["prog.py"])

    count, different = differences_at_every_value(group)

    assert count > 10
    assert different == []


def test_older_recordings_have_no_tickets_of_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = [Endpoint(1, "pipe", "1:1", "1:1", 0, "")]
    sender, receiver = [sent(b"abc", 2, 1)], [received(b"abc", 3, 2), received(b"", 4, 3)]
    group = write_run(tmp_path, {1: (pipe, sender), 2: (pipe, receiver)})
    facts = read_group(group)
    write_group(group, facts._replace(cuts=(LiveCut(3, 0, 0, 0, "end"),)))

    code, data = cut(capsys, group, "--live")

    assert not ends_have_tickets(GroupCuts(OpenedGroup(group)))
    assert (code, [each["differences"] for each in data["cuts"]]) == (0, [[]])


def test_without_the_tickets_of_closes_the_clock_does_not_know_them(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PIPE)
    group = record(tmp_path, ["prog.py"])
    cuts = GroupCuts(OpenedGroup(group))
    assert require_ends(cuts) == ""
    members = cuts.opened.matching.members
    end = max(row.ticket for row in members[0].transfers.transfers() if row.way == "receive" and not row.length)
    for member in members:
        kinds = [each.kind for each in member.endpoints]
        for at, number in enumerate(member.transfers.endpoint):
            if kinds[number - 1] == "stream":
                member.transfers.ticket[at] = 1 << 40

    positions = positions_at(members, end)

    assert not cuts.finder.is_consistent(positions)


RUNS = """\
import os
import sys

asked, ask = os.pipe()
if not os.fork():
    while os.read(asked, 1) != b"e":
        pass
    os._exit(0)
os.write(ask, b"xyz")
print("ready", flush=True)
sys.stdin.readline()
os.write(ask, b"e")
os.wait()
"""


def test_a_cut_of_a_running_group_is_shown_at_once_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prog.py").write_text(RUNS)
    command = tool.record(sys.executable, tmp_path / "made", ["prog.py"], options=CHILDREN)
    group = tmp_path / "made.rdbgs"
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as launcher:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        launcher.stdout.readline()
        wait_until(lambda: all(process.recording for process in read_group(group).processes))
        code, shown = cut(capsys, group, "--now", "--name", "while it waits")
        launcher.stdin.write(b"\n")
        launcher.stdin.close()
        launcher.wait(60)
    completed(group)

    _, later = cut(capsys, group, "--live-cut", "while it waits")
    over, _ = main(["cut", str(group), "--now"]), capsys.readouterr()

    assert code == 0
    assert shown["live"]["name"] == "while it waits"
    # What had happened by then has not changed since.
    assert later["live"]["positions"] == shown["live"]["positions"] or later["live"]["differences"] == []
    assert later["live"]["ticket"] == shown["live"]["ticket"]
    assert over == 2


def test_packed_groups_keep_their_cuts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prog.py").write_text(ASKS)
    group = record(tmp_path, ["prog.py"])
    _, before = cut(capsys, group, "--live")
    assert main(["pack", str(group), "-o", str(tmp_path / "packed")]) == 0
    packed = next(path for path in tmp_path.iterdir() if path.name.startswith("packed"))
    assert main(["unpack", str(packed), "-o", str(tmp_path / "again")]) == 0
    again = next(path for path in tmp_path.iterdir() if path.name.startswith("again"))

    _, after = cut(capsys, again, "--live")

    assert after["cuts"] == before["cuts"]


@pytest.mark.parametrize(
    "words",
    [
        ["--live", "--now"],
        ["--live-cut", "no such name"],
        ["--live-cut", "99"],
        ["--live", "--quiet"],
        ["1@3", "--live-cut", "1"],
        ["--name", "x"],
    ],
)
def test_options_that_do_not_fit_get_one_sentence(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prog.py").write_text(ASKS)
    group = record(tmp_path, ["prog.py"])
    capsys.readouterr()

    code = main(["cut", str(group), *words])

    said = capsys.readouterr()
    assert (code, said.out, len(said.err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize("words", [["--cut-every", "5"], ["--cut-every=5ms", "--children=none"], ["--cut-every=x"]])
def test_intervals_that_do_not_fit_get_one_sentence(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("")
    command = [sys.executable, "-m", "replaydbg", "record", "-o", str(tmp_path / "made"), *words, "prog.py"]

    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)

    assert done.status == 2
    assert len(done.stderr.splitlines()) == 1


# ---- the file ----

CUT = st.builds(
    LiveCut,
    *(st.integers(0, (1 << 63) - 1) for _ in range(4)),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=LONGEST_NAME // 4),
)


@given(st.lists(CUT, max_size=5), st.binary(max_size=40))
def test_what_is_written_is_read_and_a_line_that_is_cut_off_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[LiveCut], rest: bytes
) -> None:
    directory = tmp_path_factory.mktemp("cuts")
    (directory / CUTS).write_bytes("".join(map(line_of, cuts)).encode() + rest.replace(b"\n", b"")[:-1] + b"x")

    assert read_live_cuts(directory) == cuts


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    directory = tmp_path_factory.mktemp("cuts")
    (directory / CUTS).write_bytes(data)

    assert all(each.ticket >= 0 for each in read_live_cuts(directory))


def test_a_later_value_of_the_clock_is_a_later_cut(tmp_path: Path) -> None:
    group = record(tmp_path, [str(BANK), "10"])
    members = GroupCuts(OpenedGroup(group)).opened.matching.members
    positions = [positions_at(members, ticket) for ticket in range(0, 400, 7)]

    for earlier, later in pairwise(positions):
        assert all(earlier[process] <= later[process] for process in earlier)
