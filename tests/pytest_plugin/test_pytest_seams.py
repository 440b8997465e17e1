"""The pytest plugin: what its processes send each other, cut or forged. Each ends in one sentence, or is ignored."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from replaydbg.errors import Corrupt
from replaydbg.launch.replay_question import TestAnswer, TestQuestion, read_answer, read_question
from replaydbg.pytest_plugin.report.recording_errors import why_unwritten
from replaydbg.pytest_plugin.report.report_text import unreadable_text
from replaydbg.pytest_plugin.shared.end_of_test import RecordedEnd
from replaydbg.pytest_plugin.shared.json_reader import read_as
from replaydbg.pytest_plugin.shared.mark_reader import Making, Mark, Progress, Reports, ReportsEnded, read_mark
from replaydbg.pytest_plugin.shared.marks_of_tests import (
    AttemptBegun,
    AttemptEnded,
    PhaseRaised,
    TestAsked,
    mark_fields,
)
from replaydbg.pytest_plugin.shared.results import (
    Examination,
    ExaminedLine,
    Failure,
    Result,
    Written,
    Wrong,
    parse_result,
    read_examined,
    write_result,
)
from replaydbg.pytest_plugin.shared.shared_names import LauncherOrders, LaunchToken, read_launcher_orders
from replaydbg.store.sessions import begin_session, session_directory, write_messages
from tests.harness.plugin_runs import run_pytest

BEGUN = AttemptBegun("t.py::test", "t.py-test", 0, 7, crash=True)
RAISED = PhaseRaised("KeyError", "'x'", "/a.py", 3, "/t.py", 5, "call")
ENDED = AttemptEnded(keep=True, outcome="failed", failure=0)
RESULT = Result(
    nodeid="t.py::test",
    attempt=0,
    outcome="failed",
    failure=Failure.at(9, RAISED),
    size=5,
    events=9,
    sealing=0.25,
    verified=True,
    writes=(Written("x", "1", "t.py:3", "x = 1", "3:1"),),
    wrong=Wrong("x == 2", "t.py:3", "x = 1", "3:1", ("x  2 -> 1",)),
    kept=1.5,
)
END: dict[str, object] = {
    "test": {"nodeid": "x", "failure": {"event": 30, "line": 2}},
    "marks": [{"name": "before", "event": 5}, {"name": "test", "event": 20}, {"name": "late", "event": 40}],
    "snapshots": {"listed": [{"number": 1, "event": 25}], "failed": 0},
    "reason": "the test ended",
}
DEEP = "[" * 100_000


class TestMarks:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"do": "collected", "name": "collected"}, Mark("collected", False, Progress.COLLECTED)),
            ({"do": "begin", "name": "test", **mark_fields(BEGUN)}, Mark("test", False, BEGUN)),
            ({"do": "raised", "name": "failure", **mark_fields(RAISED)}, Mark("failure", False, RAISED)),
            ({"do": "end", **mark_fields(ENDED)}, Mark("", False, ENDED)),
            ({"do": "item", "needs": [1, 2]}, Mark("", False, TestAsked((1, 2)))),
            (
                {"do": "item", "needs": [], "random": [3, [1, 2], None], "before": 1},
                Mark("", False, TestAsked((), before=1, random=(3, (1, 2), None))),
            ),
            ({"do": "say"}, Mark("", False, Reports(False, None))),
            ({"do": "say", "report": None}, Mark("", False, Reports(True, None))),
            ({"do": "said", "last": True}, Mark("", False, ReportsEnded(True))),
            ({"do": "report"}, Mark("", False, Making.ASKED)),
            ({"do": "reported"}, Mark("", False, Making.MADE)),
            ({"do": "finished"}, Mark("", False, Progress.FINISHED)),
            ({"name": "half"}, Mark("half", True, None)),
        ],
    )
    def test_ours(self, fields: dict[str, object], expected: Mark) -> None:
        assert read_mark(json.dumps(fields)) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "5",
            "[]",
            "{}",
            '{"do": 5, "name": "x"}',
            '{"do": "end"}',
            '{"do": "raised", "name": "failure"}',
            '{"do": "item", "needs": 5}',
            '{"do": "item", "needs": ["1"]}',
            '{"do": "item", "needs": [], "random": [3]}',
            json.dumps({"do": "end", **mark_fields(ENDED), "keep": 1}),
            json.dumps({"do": "end", **mark_fields(ENDED), "outcome": "lost"}),
            json.dumps({"do": "begin", **mark_fields(BEGUN), "attempt": True}),
            json.dumps({"do": "begin", **mark_fields(BEGUN), "slug": "../elsewhere"}),
            json.dumps({"do": "begin", **mark_fields(BEGUN), "slug": ""}),
        ],
    )
    def test_others_mark_nothing(self, text: str) -> None:
        assert read_mark(text) == Mark("", is_called=False, content=None)

    def test_a_text_is_a_name(self) -> None:
        assert read_mark("half").name == "half"
        assert read_mark("start").name == ""
        assert read_mark(DEEP).content is None

    @pytest.mark.slow
    def test_marks_of_the_program_cost_no_recording(self, tmp_path: Path) -> None:
        source = """
            import sys
            MARKS = ['{"do": "end"}', '{"do": "begin"}', '{"do": "raised"}', '{"do": "item"}', '{"do": []}', "[" * 9000]
            def test_marks():
                for each in MARKS:
                    sys.audit("replaydbg.mark", each)
                assert 0
            def test_after():
                assert 0
        """

        ran = run_pytest(tmp_path, source)

        assert "Traceback" not in ran.output
        assert ran.kept() == ["test_it.py-test_after", "test_it.py-test_marks"]
        assert [ran.meta(each)["failure"]["type"] for each in ran.kept()] == ["AssertionError", "AssertionError"]
        assert [ran.meta(each)["verified"] for each in ran.kept()] == [True, True]


class TestResults:
    def test_they_are_read_as_they_were_written(self, tmp_path: Path) -> None:
        write_result(tmp_path, RESULT)

        assert parse_result((tmp_path / "meta.json").read_text()) == RESULT

    def test_one_that_was_cut(self) -> None:
        text = json.dumps(asdict(RESULT))

        for length in range(len(text)):
            with pytest.raises(ValueError, match=r"\w"):
                parse_result(text[:length])

    @pytest.mark.parametrize("name", [name for name in asdict(RESULT) if name != "failure" and name != "wrong"])
    @pytest.mark.parametrize("value", [[5], {"x": 1}])
    def test_a_field_of_another_type(self, name: str, value: object) -> None:
        with pytest.raises(ValueError, match=f"'{name}'|missing|'writes'|not an object"):
            parse_result(json.dumps(asdict(RESULT) | {name: value}))

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("5", "it is int and not an object"),
            (json.dumps({"nodeid": "x"}), "'attempt' is missing"),
            (json.dumps(asdict(RESULT) | {"kept": "x"}), "'kept' is str, which is not valid"),
            (json.dumps(asdict(RESULT) | {"failure": {}}), "'type' is missing"),
            (json.dumps(asdict(RESULT) | {"wrong": 5}), "'wrong' is int, which is not valid"),
            (json.dumps(asdict(RESULT) | {"events": None}), "'events' is null, which is not valid"),
            (DEEP, "it is nested too deeply"),
        ],
    )
    def test_the_reason(self, text: str, reason: str) -> None:
        with pytest.raises(ValueError, match=r"\w") as caught:
            parse_result(text)

        assert str(caught.value) == reason
        assert unreadable_text("d", reason) == f"d: its meta.json cannot be read: {reason}"

    def test_an_examination_adds_what_is_known(self) -> None:
        found = Examination(leftovers="x is 1").with_later(Examination(verified=False, verification="it ended early"))

        assert read_examined(ExaminedLine(3, found).as_text()) == ExaminedLine(3, found)
        assert RESULT.with_examination(found) == replace(
            RESULT, leftovers="x is 1", verified=False, verification="it ended early"
        )
        assert RESULT.with_examination(Examination()) == RESULT

    @pytest.mark.parametrize(
        "text",
        [
            '{"number',
            '{"number": 1, "found": {"writes": [{}]}}',
            '{"number": 1, "found": {"size": "5"}}',
            '{"number": "1", "found": {}}',
            '{"found": {}}',
            "[]",
        ],
    )
    def test_a_line_of_the_examining_process_that_is_not_valid(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"\w"):
            read_examined(text)

    def test_messages_about_what_could_not_be_written(self, tmp_path: Path) -> None:
        """The file is in the directory of results, and may hold anything."""
        token = LaunchToken(4321, 0, str(tmp_path))
        begin_session(tmp_path, token.parent)
        texts = ["5", "{}", '["a"]', '["a", 5]', DEEP[:5000], "not JSON", '["a", "no room"]']
        write_messages(session_directory(tmp_path, token.parent), texts)

        assert why_unwritten(token, "a") == "no room"
        assert why_unwritten(token, "b") == ""


class TestEnds:
    def test_events_that_are_left_out(self) -> None:
        end = RecordedEnd(END, "a.rdbg")

        assert end.failed == 30
        assert end.moved(lambda event: event - 10, events=25, began=20) == {
            "test": {"nodeid": "x", "failure": {"event": 20, "line": 2}},
            "marks": [{"name": "test", "event": 10}],
            "snapshots": {"listed": [{"number": 1, "event": 15}], "failed": 0},
            "reason": "the test ended",
            "events": 25,
        }
        assert RecordedEnd({"test": {}}, "a.rdbg").failed == 0

    @pytest.mark.parametrize(
        "fields",
        [
            {"test": 5},
            {"test": {"failure": {"event": "x"}}},
            {"test": {"failure": []}},
            {"marks": [5]},
            {"snapshots": {"listed": 5}},
            {"snapshots": {}},
        ],
    )
    def test_one_that_is_not_of_a_test(self, fields: dict[str, object]) -> None:
        with pytest.raises(Corrupt, match="its end is not that of a test: "):
            RecordedEnd(END | fields, "a.rdbg")


class TestOrders:
    def test_orders_of_the_launcher(self) -> None:
        orders = LauncherOrders("/tmp/results", bisects=True)

        assert read_launcher_orders(orders.as_text()) == orders

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"directory": 5, "bisects": true}', '{"directory": "/tmp"}'])
    def test_orders_that_are_not_valid(self, text: str) -> None:
        code = "import sys;from replaydbg.pytest_plugin.parent.launcher import main;main(sys.argv[1], [])"

        ran = subprocess.run([sys.executable, "-c", code, text], capture_output=True, text=True, check=False)

        assert ran.returncode == 1
        assert ran.stderr.startswith("replaydbg: The launcher's orders cannot be read: ")
        assert ran.stderr.count("\n") == 1

    def test_the_question_and_the_answer_of_a_replay(self) -> None:
        question = TestQuestion((("t.py::test", 0, 1),), 1, "call", "x == 1")
        answer = TestAnswer("failed", "no", ("fails", ""), "KeyError", "/t.py", 3)

        assert read_question(question.as_text()) == question
        assert read_answer(answer.as_text()) == answer

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "5",
            "[]",
            DEEP,
            '{"outcome": 5}',
            '{"outcome": "x", "check": ["a"]}',
            '{"outcome": "x", "own_line": "5"}',
        ],
    )
    def test_answers_that_are_not_ours(self, text: str) -> None:
        assert read_answer(text) is None


def test_fields_that_are_not_known_are_ignored() -> None:
    fields = mark_fields(ENDED) | {"more": 5}

    assert read_as(AttemptEnded, json.dumps(fields)) == ENDED
