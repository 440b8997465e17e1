"""Several processes of a group are open at once: each keeps its position, and messages lead from one to another."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.commands.completion.completer import complete
from replaydbg.debugger import Session
from replaydbg.engine.process_memory import MemoryBudget, memory_used
from replaydbg.groups.group_session import GroupSession
from tests.harness.recorded_group import ADDS, ANSWERS, BANK, READS_REPLY, record_program
from tests.harness.recording import record_file
from tests.harness.sanitizer import IS_SANITIZED
from tests.harness.typed import FAILS, Typed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_program(tmp_path_factory.mktemp("bank"), BANK)


@pytest.fixture
def typed(bank: Path) -> Iterator[Typed]:
    with Session(bank / "1.rdbg") as session:
        prompt = Typed.at("@end", session)
        with prompt.prompt.view.group:
            yield prompt


def place(typed: Typed) -> tuple[int, int]:
    """Return the selected process, and the line that it is at."""
    view = typed.prompt.view
    return view.process, view.place().line


def event_of(typed: Typed, line: int) -> int:
    """Return the last event of a line of the selected process."""
    session = typed.prompt.view.session
    index = session.index
    *_, last = session.run.passages(session.sources.file_named("prog.py"), line)
    return index.events_between(index.count(last), index.count(last) + 1)[-1]


# ---- selecting ----


def test_each_process_keeps_its_position(typed: Typed) -> None:
    typed(f"tbreak prog.py:{ADDS}", "rc")
    one = typed.prompt.view.here.moment

    shown = typed("proc 2")
    assert re.search(r"^process 2 of made  fork of 1 at \d+", shown)
    assert typed.prompt.view.process == 2
    typed(f"tbreak prog.py:{ANSWERS}", "rc")
    assert place(typed) == (2, ANSWERS)
    assert typed("p balance") == "40\n"

    assert f"-> {ADDS}" in typed("proc 1")
    assert typed.prompt.view.here.moment == one
    typed("proc 2")
    assert place(typed) == (2, ANSWERS)


def test_what_belongs_to_one_process_stays_there(typed: Typed) -> None:
    typed("display total", f"break prog.py:{READS_REPLY}", "start")
    typed("proc 2", "display balance")
    assert "balance" in typed(f"tbreak prog.py:{ANSWERS}", "rc")
    assert typed("info breakpoints").startswith("No breakpoints.")
    assert "total" not in typed("info display")

    typed("proc 1")

    assert f":{READS_REPLY}" in typed("info breakpoints")
    assert "total" in typed("info display")


def test_the_list_has_the_position_of_each(typed: Typed) -> None:
    shown = typed("proc").splitlines()
    assert shown[0].startswith("-> 1  program")
    assert re.match(r"   2  fork of 1 at \d+  \(not opened\)", shown[1])

    typed("proc 2")

    assert typed("proc") == typed("info processes") == typed("inferior") == typed("info inferiors")
    assert re.match(r"   1 .*prog.py:\d+ <module>", typed("proc").splitlines()[0])
    assert re.match(r"-> 2 .*thread 0", typed("proc").splitlines()[1])


def test_a_moment_in_another_process(typed: Typed) -> None:
    typed("proc 2 @end")
    end = typed.prompt.view.here.count

    typed("proc 1", "proc 2 @start")

    assert (typed.prompt.view.process, typed.prompt.view.here.count) == (2, 1)
    assert end > 1
    assert "made/2@" in typed("when")


def test_completion_knows_the_recorded_processes(typed: Typed) -> None:
    assert complete(typed.prompt, "proc ", 5).words == ("1", "2")
    assert complete(typed.prompt, "jump", 4).words == ("jump-to-receiver", "jump-to-sender")


def test_a_line_that_receives_often(typed: Typed) -> None:
    typed("proc 2", "tbreak prog.py:16", "rc")
    assert place(typed) == (2, 16)

    # The whole of the child: three receives, of three sends.
    shown = typed("jump-to-sender")

    assert re.search(r"^1  1@.*\n2  1@.*\n3  1@.*\nThere are 3 sends. Choose an event: ", shown)
    assert place(typed) == (2, 16)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("proc 7", "made has no process 7. Its processes are 1 to 2."),
        ("proc x", "usage: proc [N [MOMENT]] (got 'x')"),
        ("proc -1", "usage: proc [N [MOMENT]] (got '-1')"),
        ("proc 99999999", "usage: proc [N [MOMENT]] (got '99999999')"),
        ("proc 1 nowhere", "No such moment"),
        ("jump-to-sender 0", "N must be at least 1 (got 0)."),
        ("jump-to-sender 1", "Event 1 of made/1 received nothing through a channel."),
        ("jump-to-sender 99999", "made/1 has no event 99999."),
        ("jump-to-sender 1 2 3", "usage: jump-to-sender [EVENT [N]]"),
    ],
)
def test_what_cannot_be_done(typed: Typed, line: str, answer: str) -> None:
    before = typed.prompt.view.here

    assert answer in typed(line)

    assert (typed.prompt.view.process, typed.prompt.view.here.count) == (1, before.count)


def test_a_recording_of_one_process(tmp_path: Path) -> None:
    with Session(record_file(FAILS, tmp_path, status=1)) as session:
        typed = Typed.at("@end", session)

        for line in ("proc", "proc 2", "jump-to-sender", "jump-to-receiver", "sender", "info processes"):
            assert "This is a recording of one process:" in typed(line), line


_STARTS_AND_FORKS = """import os, subprocess
subprocess.run(["true"])
if not os.fork():
    os._exit(0)
os.wait()
"""


def test_processes_that_are_not_recorded(tmp_path: Path) -> None:
    made = record_program(tmp_path, _STARTS_AND_FORKS)
    with Session(made / "1.rdbg") as session:
        typed = Typed.at("@end", session)

        assert "(not recorded: another program)" in typed("proc")
        assert typed("proc 2") == "Process 2 of made is not recorded: another program.\n"


def test_the_recording_of_another_process_is_not_opened(bank: Path, tmp_path: Path) -> None:
    copied = tmp_path / "made.rdbgs"
    shutil.copytree(bank, copied)
    shutil.copy(copied / "1.rdbg", copied / "2.rdbg")
    with Session(copied / "1.rdbg") as session:
        typed = Typed.at("@end", session)

        assert "it is the recording of another process" in typed("proc 2")
        assert typed.prompt.view.process == 1
        assert session.travel.memory.budget.sharers == 1
        assert typed("p total") == "200\n"


# ---- following messages ----


def test_there_and_back(typed: Typed) -> None:
    received = event_of(typed, READS_REPLY)

    shown = typed(f"jump-to-sender {received}")
    assert re.search(rf"^What 1@{received} received was sent by 2@\d+  prog.py:{ANSWERS}  os.write\(answer", shown)
    assert place(typed) == (2, ANSWERS)
    assert typed("p balance") == "40\n"

    shown = typed("jump-to-receiver")
    assert re.search(rf"was received by 1@{received}  prog.py:{READS_REPLY}", shown), shown
    assert place(typed) == (1, READS_REPLY)
    typed("jump-to-sender")
    assert place(typed) == (2, ANSWERS)


def test_the_line_that_is_about_to_receive(typed: Typed) -> None:
    typed("start", f"tbreak prog.py:{READS_REPLY}", "c")
    assert place(typed) == (1, READS_REPLY)

    typed("jump-to-sender")

    assert place(typed) == (2, ANSWERS)
    assert typed("p balance") == "90\n"


def test_what_was_just_sent(typed: Typed) -> None:
    typed("start", f"tbreak prog.py:{READS_REPLY}", "c", "jump-to-receiver")

    assert place(typed) == (2, ANSWERS - 2)


def test_back_leads_through_the_processes(typed: Typed) -> None:
    typed("start", f"tbreak prog.py:{READS_REPLY}", "c")
    asked = typed.prompt.view.here.count
    # The first step leads from inside the line to its beginning.
    typed("jump-to-sender", "rn", "rn")
    assert place(typed) == (2, ANSWERS - 1)

    typed("back")
    assert place(typed) == (2, ANSWERS)
    shown = typed("back 2")
    assert shown.startswith("process 1 of made  program")
    assert (place(typed), typed.prompt.view.here.count) == ((1, READS_REPLY), asked)
    typed("fwd 3")
    assert place(typed) == (2, ANSWERS - 1)


SEVERAL = """
import os
import subprocess

out, into = os.pipe()
first, second = os.pipe()
for text in (b"ab", b"cd"):
    if not os.fork():
        if text == b"cd":
            os.read(first, 1)
        os.write(into, text)
        os.write(second, b"!")
        os._exit(0)
    if text == b"cd":
        os.wait(), os.wait()
data = os.read(out, 10)
os.write(into, b"lost")
outside, inside = os.pipe()
subprocess.run(["echo", "word"], stdout=inside)
given = os.read(outside, 10)
del given
"""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_program(tmp_path_factory.mktemp("several"), SEVERAL)


def test_several_sends_to_choose_from(several: Path) -> None:
    with Session(several / "1.rdbg") as session:
        typed = Typed.at("@end", session)
        with typed.prompt.view.group:
            event = event_of(typed, 16)

            shown = typed(f"jump-to-sender {event}")
            assert re.search(r"^1  2@\d+  prog.py:11 .*\n2  3@\d+  prog.py:11 ", shown)
            assert f"There are 2 sends. Choose one: `jump-to-sender {event} N`." in shown
            assert typed.prompt.view.process == 1

            assert "N must be at most 2 (got 3)." in typed(f"jump-to-sender {event} 3")
            typed(f"jump-to-sender {event} 2")
            assert place(typed) == (3, 11)
            assert typed("p text") == "b'cd'\n"


def test_ends_outside(several: Path) -> None:
    with Session(several / "1.rdbg") as session:
        typed = Typed.at("@end", session)

        assert "4 bytes were never received." in typed(f"jump-to-receiver {event_of(typed, 17)}")
        assert "5 bytes were sent by no recorded process." in typed(f"jump-to-sender {event_of(typed, 20)}")
        assert typed.prompt.view.process == 1


EQUAL = """
import os

out, into = os.pipe()
go, start = os.pipe()
children = []
for _ in range(2):
    pid = os.fork()
    if not pid:
        os.read(go, 1)
        os.write(into, b"same")
        os._exit(0)
    children.append(pid)
os.write(start, b"!!")
for pid in children:
    os.waitpid(pid, 0)
one = os.read(out, 4)
two = os.read(out, 4)
both = one + two
"""


def test_a_send_that_is_not_certain_is_said_to_be(tmp_path: Path) -> None:
    made = record_program(tmp_path, EQUAL)
    with Session(made / "1.rdbg") as session:
        typed = Typed.at("@end", session)
        with typed.prompt.view.group:
            event = event_of(typed, 18)

            shown = typed(f"jump-to-sender {event}")

            if "There are" in shown:  # both wrote at once
                assert "ambiguous" in shown
                shown = typed(f"jump-to-sender {event} 1")
                assert "ambiguous" in shown
            assert typed.prompt.view.process in (2, 3)
            assert typed.prompt.view.place().line == 11


WAITING = """
import os
import signal

out, into = os.pipe()
begun, begins = os.pipe()
pid = os.fork()
if not pid:
    os.write(begins, b"!")
    os.write(into, bytes(1 << 20))
    os._exit(0)
os.read(begun, 1)
data = os.read(out, 1000)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
"""


def test_a_send_that_never_ended(tmp_path: Path) -> None:
    made = record_program(tmp_path, WAITING)
    with Session(made / "1.rdbg") as session:
        typed = Typed.at("@end", session)
        with typed.prompt.view.group:
            shown = typed(f"jump-to-sender {event_of(typed, 13)}")

            assert "(unfinished call)" in shown
            assert "That call had not ended when the recording ended" in shown
            assert place(typed) == (2, 10)


BEFORE = """\
import os
out, into = os.pipe()
os.write(into, b"x")
os.read(out, 1)
if not os.fork():
    os._exit(0)
os.wait()
"""


def test_an_event_before_the_fork_is_the_parents(tmp_path: Path) -> None:
    made = record_program(tmp_path, BEFORE)
    with Session(made / "2.rdbg") as session:
        typed = Typed.at("@end", session)
        with typed.prompt.view.group:
            typed(f"jump-to-sender {event_of(typed, 4)}")

            assert place(typed) == (1, 3)


# ---- memory ----

HEAVY = """
import os

cells = [[number] for number in range(100_000)]


def write_everywhere():
    for turn in range(40):
        for cell in cells:
            cell[0] = turn


write_everywhere()
if not os.fork():
    write_everywhere()
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(IS_SANITIZED, reason="the sanitizer holds most of this memory")
def test_all_processes_share_one_memory_limit(tmp_path: Path) -> None:
    made = record_program(tmp_path, HEAVY)
    budget = MemoryBudget(96 << 20)

    def opens(path: Path, branch_of: Session | None = None) -> Session:
        return Session(path, memory=budget, spacing=0.02, branch_of=branch_of)

    with GroupSession(opens(made / "1.rdbg"), opens) as group:
        first = group.session(1).travel
        before = len(first.timeline)
        assert first.memory.allowed == 96 << 20

        second = group.session(2).travel

        assert (budget.sharers, second.memory.allowed, first.memory.allowed) == (2, 48 << 20, 48 << 20)
        assert len(first.timeline) < before
        for each in (first, second):
            assert memory_used(each.timeline.processes()) <= (48 << 20) * 1.5
        assert group.session(1) is not group.session(2)
