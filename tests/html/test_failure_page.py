"""The page of a failure has what a reader needs, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.pages.facts.collected import recording_of
from replaydbg.pages.making import page_of_session
from tests.harness.recording import record_file
from tests.html.conftest import FIXTURES
from tests.html.read_page import ReadPage

pytestmark = pytest.mark.slow
TIMES = "\N{MULTIPLICATION SIGN}"
TILL = FIXTURES / "till_of_three_workers.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(TILL, tmp_path_factory.mktemp("page"), status=1)
    with Session(recording) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(session: Session) -> ReadPage:
    return ReadPage(page_of_session(session, recording_of(session, "till.rdbg")).decode())


def test_it_needs_nothing_else(page: ReadPage) -> None:
    page.check()


def test_it_begins_with_the_exception_and_where_it_was_raised(page: ReadPage) -> None:
    assert page.contents["h1"] == ["ValueError: -10 too much or too little: {'a': 110, 'b': 100}"]
    assert "till_of_three_workers.py:29 in audit, thread 0" in page.text


def test_values_are_beside_the_lines_that_use_or_assign_them(page: ReadPage) -> None:
    failing = next(each for each in page.rows if each.startswith("▶"))
    assert failing.startswith(f"▶291{TIMES}executed here: raise ValueError(")
    assert "difference = -10" in failing
    assert "till.balance = {'a': 110, 'b': 100}" in failing
    assert any("total = sum(till.balance.values())total = 210" in each for each in page.rows)


def test_lines_say_how_often_they_ran(page: ReadPage) -> None:
    assert f"363{TIMES} for each in threads:" in page.rows


def test_each_frame_of_the_stack_can_be_opened(page: ReadPage) -> None:
    frames = [each for each in page.contents["summary"] if each.startswith(("main", "<module>"))]
    assert frames == [f"main {TILL}:40 audit(till, expected=220)", f"<module> {TILL}:43 main()"]
    assert "expected220int" in page.contents["tr"]


def test_the_last_writes_lead_back_to_the_thread_that_wrote_last(page: ReadPage) -> None:
    writes = [each for each in page.rows if " was " in each]
    assert writes[0].startswith("difference was bound at ")
    assert "computed from total" in writes[0]
    assert any(each.startswith("till.balance was written at ") and "Till.add" in each for each in writes)


def test_output_leads_to_moments_in_the_timeline(page: ReadPage, session: Session) -> None:
    lines = [each for each in page.rows if each.endswith("adding 10")]
    assert len(lines) == 2
    moments = [each.removesuffix("adding 10") for each in lines]
    printed = [session.index.moment(each.line) for each in session.run.output()]
    assert moments == [f"{each.event}:{each.step}" for each in printed[:2]]
    assert {f"#at-{each.replace(':', '-')}" for each in moments} <= set(page.links)


def test_the_timeline_has_a_row_for_each_thread(page: ReadPage) -> None:
    for name in ("thread 0 main", "thread 1 worker 0", "thread 2 worker 1"):
        assert name in page.contents["text"], page.contents["text"]


def test_calls_are_a_flame_graph_over_time(page: ReadPage, session: Session) -> None:
    assert "calls" in page.ids
    drawn = [each for each in page.contents["title"] if " at " in each and " line" in each]
    mains = [each for each in drawn if each.startswith("main ")]
    assert len(mains) == 1 and f"{TILL}:32" in mains[0], drawn
    calls = [each for each in session.run.each_call().each if each.code.file == str(TILL)]
    moment = session.index.moment(next(each.begun for each in calls if each.code.function == "main"))
    assert f" at {moment.event}:{moment.step}, " in mains[0]
    # However short they are, what is drawn stands for all of them.
    added = [each for each in calls if each.code.function == "Till.add"]
    assert sum(_number(each) for each in drawn if each.startswith("Till.add ")) == len(added) > 0
    main = next(each for each in calls if each.code.function == "main")
    assert f"main{TILL}:321{main.ended - main.begun:,}" in page.rows, page.rows


def _number(title: str) -> int:
    """Return how many calls a bar stands for."""
    _, several, rest = title.partition(f" {TIMES} ")
    return int(rest.split()[0].replace(",", "")) if several else 1


def test_the_growth_of_the_heap_is_shown(page: ReadPage) -> None:
    assert any(each.startswith("Size of the heap: 6 snapshots, from ") for each in page.contents["title"])
    assert any("till.log" in each for each in page.rows)


def test_commands_open_the_recording(page: ReadPage) -> None:
    commands = [each for each in page.contents["code"] if each.startswith("replaydbg ")]
    assert commands[0] == "replaydbg debug till.rdbg"
    assert "replaydbg why till.rdbg difference" in commands
    assert "replaydbg check till.rdbg" in commands


def test_the_session_stays_where_it_was(page: ReadPage, session: Session) -> None:
    assert session.failure is not None
    assert session.here.count == session.failure.count


def test_another_moment_has_a_page_too(session: Session) -> None:
    session.seek(session.first_own)
    try:
        other = ReadPage(page_of_session(session, recording_of(session, "till.rdbg")).decode())
    finally:
        session.seek("@exc")

    other.check()
    assert other.contents["p"][0] == "Moment in till.rdbg"


def test_no_time_leaves_out_parts_and_says_so(session: Session) -> None:
    short = ReadPage(page_of_session(session, recording_of(session, "till.rdbg"), seconds=-1).decode())

    short.check()
    assert "No timeline: the time for this page was used up." in short.text
    assert short.contents["h1"][0].startswith("ValueError")


def test_the_recording_is_named_as_it_was_given(page: ReadPage) -> None:
    assert page.contents["p"][0] == "Failure in till.rdbg"
    assert Path("till.rdbg").name in page.contents["title"][0]
