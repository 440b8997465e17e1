"""Threads, frames, variables, expressions and what completes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.dap_client import DapClient
from tests.harness.recording import record_file

LARGE = """\
class Point:
    def __init__(self):
        self.x, self.y = 1, [2]


def deep(n):
    if n:
        return deep(n - 1)
    many = list(range(2500))
    table = {f"key{number}": number for number in range(150)}
    few, point, some = {"a": [1], 2: "b"}, Point(), {3}
    evil = "\\x1b[31m{text}"
    return len(many)


deep(40)
"""


@pytest.fixture(scope="module")
def large_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    program = folder / "large.py"
    program.write_text(LARGE)
    return record_file(program, folder)


@pytest.fixture
def large(client: DapClient, large_recording: Path) -> DapClient:
    """A client at line 13 of the program, the last one that runs."""
    client.attach(large_recording)
    return client


def test_threads_and_tasks(lanes: DapClient) -> None:
    lanes.request("setBreakpoints", source=lanes.stack()[0]["source"], breakpoints=[{"line": 40}])
    lanes.move("reverseContinue")

    threads = {each["name"].strip(): each["id"] for each in lanes.request("threads")["threads"]}

    assert [name for name in threads if name.startswith("thread")] == ["thread 0 MainThread"]
    waits = next(name for name in threads if name.startswith("task waits: waits for"))
    runs = next(name for name in threads if name.startswith("task Task-1: runs"))
    assert [each["name"] for each in lanes.stack(threads[waits])] == ["Event.wait", "inner", "outer"]
    (frame,) = lanes.stack(threads[runs])
    assert (frame["name"], frame["line"]) == ("main", 40)
    assert lanes.request("evaluate", expression="str(error)", frameId=frame["id"])["result"] == "\"'missing'\""


def test_a_task_that_waits_has_no_values_and_makes_no_steps(lanes: DapClient) -> None:
    lanes.request("setBreakpoints", source=lanes.stack()[0]["source"], breakpoints=[{"line": 40}])
    lanes.move("reverseContinue")
    threads = {each["name"].strip(): each["id"] for each in lanes.request("threads")["threads"]}
    task = next(number for name, number in threads.items() if name.startswith("task waits"))
    frame = lanes.stack(task)[0]["id"]

    assert lanes.request("scopes", frameId=frame)["scopes"] == []
    assert "waits" in lanes.refused("evaluate", expression="1", frameId=frame)
    assert "waits" in lanes.refused("next", threadId=task)


def test_a_stack_comes_in_pages(large: DapClient) -> None:
    whole = large.request("stackTrace", threadId=large.main)
    page = large.request("stackTrace", threadId=large.main, startFrame=38, levels=5)

    assert whole["totalFrames"] == page["totalFrames"] == 42
    assert page["stackFrames"] == whole["stackFrames"][38:43]
    assert [each["name"] for each in page["stackFrames"]] == ["deep", "deep", "deep", "<module>"]


def test_variables_of_each_frame(large: DapClient) -> None:
    assert large.local(0)["n"]["value"] == "0"
    assert large.local(3)["n"]["value"] == "3"
    assert large.local(0, scope=1)["Point"]["type"] == "type"
    assert [each["name"] for each in large.request("scopes", frameId=large.stack()[-1]["id"])["scopes"]] == ["Globals"]


def test_a_long_list_comes_in_pages_to_its_end(large: DapClient) -> None:
    many = large.local()["many"]
    assert many["indexedVariables"] == 2500

    page = large.parts(many["variablesReference"], filter="indexed", start=2400, count=100)

    assert list(page) == [f"[{number}]" for number in range(2400, 2500)]
    assert page["[2499]"]["value"] == "2499"
    assert len(large.parts(many["variablesReference"])) == 1000
    assert large.parts(many["variablesReference"], filter="named") == {}


def test_parts_of_values(large: DapClient) -> None:
    found = large.local()

    assert found["table"]["indexedVariables"] == 150
    page = large.parts(found["table"]["variablesReference"], filter="indexed", start=149, count=10)
    assert {name: each["value"] for name, each in page.items()} == {"['key149']": "149"}
    few = large.parts(found["few"]["variablesReference"])
    assert (few["['a']"]["value"], few["[2]"]["evaluateName"]) == ("[1]", "few[2]")
    point = large.parts(found["point"]["variablesReference"])
    assert list(point) == ["x", "y"]
    assert large.parts(point["y"]["variablesReference"])["[0]"]["evaluateName"] == "point.y[0]"
    (item,) = large.request("variables", variablesReference=found["some"]["variablesReference"])["variables"]
    assert (item["value"], item["variablesReference"]) == ("3", 0)


def test_recorded_text_is_data(large: DapClient) -> None:
    assert large.local()["evil"]["value"] == "'\\x1b[31m{text}'"
    assert large.request("evaluate", expression="evil", context="clipboard")["result"] == "'\\x1b[31m{text}'"
    answer = large.response_to(large.send("evaluate", {"expression": "exec('raise ValueError(evil)')"}))
    assert answer["body"]["error"]["format"] == "{text}"


def test_references_die_with_the_stop(large: DapClient) -> None:
    frame = large.stack()[0]["id"]
    many = large.local()["many"]["variablesReference"]

    large.move("stepBack")

    assert "earlier stop" in large.refused("scopes", frameId=frame)
    assert "earlier stop" in large.refused("variables", variablesReference=many)
    assert "unknown" in large.refused("variables", variablesReference=10**6)


def test_expressions_leave_nothing(large: DapClient) -> None:
    frame = large.stack()[0]["id"]

    value = large.request("evaluate", expression="many[:3] + [many.clear()]", frameId=frame, context="watch")
    assert value["result"] == "[0, 1, 2, None]"
    assert large.parts(value["variablesReference"])["[1]"]["value"] == "1"
    assert large.request("evaluate", expression="len(many)", frameId=frame, context="hover")["result"] == "2500"
    assert "NameError" in large.refused("evaluate", expression="nothing", frameId=frame, context="hover")
    assert large.request("evaluate", expression="print('x')", frameId=frame)["result"] == "x"


def test_parts_of_an_expression_are_those_of_its_value(large: DapClient) -> None:
    value = large.request("evaluate", expression="many[:1] + [[7]]", context="repl", frameId=large.stack()[0]["id"])

    inner = large.parts(value["variablesReference"])["[1]"]

    assert inner["evaluateName"] == "(many[:1] + [[7]])[1]"
    assert large.parts(inner["variablesReference"])["[0]"]["value"] == "7"


def test_the_console_takes_the_debuggers_own_words(failed: DapClient) -> None:
    assert "account.balance was written" in failed.console("why account.balance")
    assert failed.console("results[-1]") == "'hidden'"
    assert "account" in failed.console("info locals")
    assert "Unknown command" in failed.refused("evaluate", expression="wherever", context="repl")
    assert failed.console("when")


def test_words_that_move_report_a_stop(failed: DapClient) -> None:
    failed.console("reverse-next")
    assert failed.event("stopped")["reason"] == "step"
    assert failed.line == 28
    failed.console("@exc")
    assert failed.event("stopped")["reason"] == "goto"
    failed.console("break twice")
    failed.console("reverse-continue")
    assert failed.event("stopped")["reason"] == "breakpoint"
    failed.console("direction reverse")
    failed.move("next")
    assert failed.line == 13  # the console's direction is not that of an editor's buttons


def test_the_console_leaves_the_session(failed: DapClient) -> None:
    failed.request("evaluate", expression="quit", context="repl")

    failed.event("terminated")


def test_the_console_selects_frames(large: DapClient) -> None:
    frame = large.stack()[0]["id"]
    ask = {"context": "repl", "frameId": frame}

    large.request("evaluate", expression="up 2", **ask)

    assert large.request("evaluate", expression="0 + n", **ask)["result"] == "2"


@pytest.mark.parametrize(
    ("text", "column", "start", "words"),
    [
        ("account.ba", 11, 9, ["balance"]),
        ("why acc", 8, 5, ["account"]),
        ("reverse-n", 10, 1, ["reverse-next"]),
        ("'€😀' + acc", 12, 9, ["account"]),
    ],
)
def test_completions(failed: DapClient, text: str, column: int, start: int, words: list[str]) -> None:
    found = failed.request("completions", text=text, column=column, frameId=failed.stack()[0]["id"])["targets"]

    assert [each["label"] for each in found] == words
    assert {each["start"] for each in found} == {start}


def test_lines_and_columns_may_count_from_zero(client: DapClient, failing_recording: Path) -> None:
    client.initialize(linesStartAt1=False, columnsStartAt1=False)
    client.request("attach", recording=str(failing_recording))
    client.request("configurationDone")
    client.event("stopped")

    frame = client.stack()[0]

    assert (frame["line"], frame["column"]) == (29, 0)
    found = client.request("setBreakpoints", source=frame["source"], breakpoints=[{"line": 11}])["breakpoints"]
    assert found[0]["line"] == 11
    client.move("reverseContinue")
    assert client.line == 11
    assert client.request("completions", text="resul", column=5)["targets"][0]["start"] == 0
