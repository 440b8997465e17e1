"""A forked child whose parent is open does not run its parent's part again, and is the same as if it had."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.breakpoints import Breakpoints
from replaydbg.engine import branching
from replaydbg.engine.protocol import RunOrder, Watch
from replaydbg.engine.travel import SPACING
from replaydbg.groups.group_session import GroupSession
from replaydbg.log.reader import open_recording
from tests.harness.recorded_group import record_program
from tests.harness.typed import Typed

pytestmark = pytest.mark.slow

PROGRAM = """\
import json
import os
import time

rows = {}


def work(first, last):
    for number in range(first, last):
        rows[number] = json.dumps({"number": number, "time": time.time() > 0})
        if number % 500 == 0:
            print("row", number)
        try:
            int(rows[number])
        except ValueError:
            pass


work(0, 3000)
text = "x" * 100_000
if not os.fork():
    import colorsys

    work(3000, 4000)
    del rows[17]
    pieces = [b"y" * 2000 for _ in range(100)]
    if not os.fork():
        work(4000, 4100)
        raise RuntimeError("of the grandchild")
    print(colorsys.rgb_to_hsv(1, 1, 0), os.wait()[1])
    raise SystemExit(3)
import calendar

work(3000, 3500)
print(calendar.isleap(2000), os.wait()[1])
"""
FORKS, WORKS = 21, 24


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_program(tmp_path_factory.mktemp("tree"), PROGRAM)


def alone(path: Path) -> Session:
    return Session(path, spacing=0.01, keeps_index=False)


@pytest.fixture(scope="module")
def group(made: Path) -> Iterator[GroupSession]:
    def opens(path: Path, branch_of: Session | None = None) -> Session:
        return Session(path, spacing=0.01, keeps_index=False, branch_of=branch_of)

    with GroupSession(opens(made / "1.rdbg"), opens) as group:
        yield group


def facts(session: Session) -> dict[str, object]:
    """Return what the first pass found out."""
    index = session.index
    return {
        "lines": (index.total, index.end, index.events, index.digest),
        "starts": tuple(index.starts),
        "hits": index.hits,
        "raised": tuple((each, each.lineage, each.file, each.line, each.is_again) for each in index.raised),
        "output": index.output,
        "ended": (index.ended, index.ending.status, index.uncaught),
        "here": (session.here.moment, session.here.why, session.here.top and session.here.top.line),
    }


@pytest.mark.parametrize("number", [2, 3])
def test_it_is_the_same_run(made: Path, group: GroupSession, number: int) -> None:
    with open_recording(made / f"{number}.rdbg") as recording:
        branch = recording.header.branch
    assert branch is not None
    parent = group.session(branch.process)
    before = {each.event for each in parent.travel.timeline.standing() if each.event < branch.event}

    session = group.session(number)

    # The events since a checkpoint of the parent are run, and none before it.
    assert session.travel.first_event in before - {0}
    with alone(made / f"{number}.rdbg") as other:
        assert other.travel.first_event == 0
        assert facts(session) == facts(other)


def test_objects_lie_at_the_same_addresses_from_wherever_a_process_comes(group: GroupSession) -> None:
    """By these a session recognizes them, on both sides of a checkpoint."""
    session = group.session(2)
    (there,) = session.run.passages(session.sources.file_named("prog.py"), WORKS)
    count = session.index.count(there)
    watches = [Watch(name, module="__main__", stops=False) for name in ("text", "rows", "work")]
    found = []
    for checkpoint in session.travel.timeline.standing():
        if checkpoint.count < count:
            with closing(checkpoint.clone()) as worker:
                worker.run(RunOrder(until=count))
                found.append(worker.locate_each(watches))

    assert len(found) > 1 and found[0][0].object[0]
    assert found == found[:1] * len(found)


def same_answers(made: Path, group: GroupSession, *lines: str) -> str:
    """Return what lines print, of process 2; alone they print the same."""
    shown = []
    with alone(made / "2.rdbg") as other:
        for session in (group.session(2), other):
            typed = Typed.at("@end", session)
            session.breakpoints.take_over(Breakpoints())
            shown.append(re.sub(r"0x[0-9a-f]+", "0x", typed(*lines)))
    assert shown[0] == shown[1]
    return shown[0]


@pytest.mark.parametrize(
    "lines",
    [
        (f"break prog.py:{FORKS}", "start", "c", "p len(rows)", "n", "p len(rows), 'colorsys' in dir()"),
        ("seek 30%", "p len(rows)", f"tbreak prog.py:{WORKS}", "c", "p len(rows), len(text)"),
        (f"tbreak prog.py:{WORKS}", "rc", "rn", "rn", "rn", "n", "n", "n", "where"),
        ("why rows[3500]", "why rows[17]", "why rows[18]", "history text"),
        ("seek 20%", "why rows[17]", "exceptions 3", "events 3"),
        ("diff 30%", "holders text"),
        ("output 3", "threads", "info locals"),
    ],
    ids=["fork", "across", "back", "why", "early", "memory", "about"],
)
def test_it_answers_the_same(made: Path, group: GroupSession, lines: tuple[str, ...]) -> None:
    shown = same_answers(made, group, *lines)

    assert "Traceback" not in shown


def test_the_parent_stays_itself(made: Path, group: GroupSession) -> None:
    group.session(2)
    typed = Typed.at("@end", group.session(1))

    assert typed("p len(rows), 'colorsys' in dir(), 'calendar' in dir()") == "(3500, False, True)\n"
    with alone(made / "1.rdbg") as other:
        assert facts(group.session(1))["lines"] == facts(other)["lines"]


def test_a_child_outlives_the_session_of_its_parent(made: Path) -> None:
    with Session(made / "1.rdbg", spacing=0.01) as parent:
        child = Session(made / "2.rdbg", spacing=0.01, branch_of=parent)
        assert child.travel.first_event > 0
        count = child.index.total // 2
    with child:
        assert child.seek(count).count == count  # its processes have ended with their keeper: others take their places
        assert child.travel.root.event == 0


ENDINGS = {
    "killed": "os.kill(os.getpid(), 9)",
    "fast": "os._exit(0)",
}


@pytest.mark.parametrize("how", ENDINGS)
def test_other_children(tmp_path: Path, how: str) -> None:
    """A child that was killed is replayed from its beginning: nothing but a timer ends a replay that computes then."""
    source = PROGRAM.replace("    work(3000, 4000)\n", f"    {ENDINGS[how]}\n")
    made = record_program(tmp_path, source)
    with GroupSession(Session(made / "1.rdbg", spacing=0.01, keeps_index=False)) as group:
        session = group.session(2)
        assert (session.travel.first_event > 0) == (how != "killed")
        with alone(made / "2.rdbg") as other:
            assert facts(session) == facts(other)


def test_only_the_process_that_forked_it_is_its_parent(made: Path, tmp_path: Path) -> None:
    with alone(made / "1.rdbg") as first, Session(made / "3.rdbg", branch_of=first) as third:
        assert third.travel.first_event == 0
    other = record_program(tmp_path, PROGRAM)
    with alone(other / "1.rdbg") as first, Session(made / "2.rdbg", branch_of=first) as second:
        assert second.travel.first_event == 0


def test_a_log_that_is_not_its_parents_is_replayed_from_its_beginning(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the headers say that it is: what both have in common is compared."""
    monkeypatch.setattr(branching, "_continues", lambda recording, parent: True)
    other = record_program(tmp_path, PROGRAM)
    with alone(other / "1.rdbg") as parent, Session(made / "2.rdbg", keeps_index=False, branch_of=parent) as child:
        assert child.travel.first_event == 0
        with alone(made / "2.rdbg") as lone:
            assert facts(child) == facts(lone)


def test_it_needs_checkpoints_before_the_fork(made: Path) -> None:
    """With the first one alone, before the first line, all is run again; and nothing is wrong."""
    with (
        Session(made / "1.rdbg", spacing=1000 * SPACING) as parent,
        Session(made / "2.rdbg", branch_of=parent) as child,
    ):
        assert child.travel.first_event == 0
        with alone(made / "2.rdbg") as other:
            assert facts(child) == facts(other)
