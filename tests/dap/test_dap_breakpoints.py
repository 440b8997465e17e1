"""Breakpoints of every kind, in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replaydbg.dap.log_points import message_expression
from replaydbg.errors import UsageError
from tests.harness.dap_client import DapClient


def set_lines(client: DapClient, *points: dict[str, Any]) -> list[dict[str, Any]]:
    source = client.stack()[-1]["source"]
    found: list[dict[str, Any]] = client.request("setBreakpoints", source=source, breakpoints=list(points))[
        "breakpoints"
    ]
    return found


def visited(client: DapClient, expression: str) -> list[str]:
    """The value of an expression at each stop, from here back to the start."""
    found = []
    while client.move("reverseContinue")["reason"] != "start":
        found.append(client.request("evaluate", expression=expression, frameId=client.stack()[0]["id"])["result"])
    return found


def test_a_line_stops_in_both_directions_and_is_replaced(failed: DapClient) -> None:
    (point,) = set_lines(failed, {"line": 12})
    assert point["verified"] and point["line"] == 12

    assert visited(failed, "n") == ["4", "3", "2", "1", "0"]
    stop = failed.move("continue")
    assert (stop["reason"], stop["hitBreakpointIds"]) == ("breakpoint", [point["id"]])
    set_lines(failed)
    assert failed.move("continue")["reason"] == "end"


@pytest.mark.parametrize(
    ("point", "values"),
    [
        ({"line": 12, "condition": "n > 2"}, ["4", "3"]),
        ({"line": 12, "hitCondition": "%2"}, ["3", "1"]),
        ({"line": 12, "hitCondition": "2"}, ["1"]),
        ({"line": 12, "hitCondition": ">= 4"}, ["4", "3"]),
        ({"line": 12, "condition": "n > 1", "hitCondition": "== 2"}, ["3"]),
    ],
)
def test_conditions_and_rules_for_hits(failed: DapClient, point: dict[str, Any], values: list[str]) -> None:
    assert set_lines(failed, point)[0]["verified"]

    assert visited(failed, "n") == values


def test_a_line_that_never_ran_moves_to_the_next_that_did(failed: DapClient) -> None:
    moved, never, not_python, no_rule = set_lines(
        failed, {"line": 11}, {"line": 300}, {"line": 12, "condition": "n >"}, {"line": 12, "hitCondition": "often"}
    )

    assert moved["line"] == 12 and "using 12" in moved["message"]
    assert [each["verified"] for each in (never, not_python, no_rule)] == [False] * 3
    assert "never ran" in never["message"]
    assert "not valid Python" in not_python["message"]
    assert "A rule for hits" in no_rule["message"]


def test_a_file_of_which_no_line_ran_has_no_breakpoints(failed: DapClient) -> None:
    found = failed.request("setBreakpoints", source={"path": "/nowhere/at_all.py"}, breakpoints=[{"line": 1}])

    assert found["breakpoints"][0]["verified"] is False
    assert "ran" in found["breakpoints"][0]["message"]


def test_functions(failed: DapClient) -> None:
    found = failed.request(
        "setFunctionBreakpoints", breakpoints=[{"name": "twice", "hitCondition": "2"}, {"name": "thrice"}]
    )["breakpoints"]

    assert [each["verified"] for each in found] == [True, False]
    assert "twice" in found[1]["message"]
    assert visited(failed, "n") == ["1"]


def test_a_log_point_prints_the_whole_run_at_once(failed: DapClient) -> None:
    (point,) = set_lines(failed, {"line": 13, "logMessage": "{n}: {doubled}"})
    failed.request("threads")

    assert point["verified"] and "id" not in point
    printed = [line.partition("  ")[2] for line in failed.output.splitlines() if ": " in line]
    assert printed == ["0: 0", "1: 2", "2: 4", "3: 6", "4: 8"]
    assert failed.move("reverseContinue")["reason"] == "start"  # it does not stop


def test_a_log_point_is_printed_once_and_has_conditions(failed: DapClient) -> None:
    points: list[dict[str, Any]] = [
        {"line": 13, "logMessage": "{n} of 5", "condition": "n % 2", "hitCondition": "2"},
        {"line": 12},
    ]
    set_lines(failed, *points)
    set_lines(failed, *points, {"line": 27})
    failed.request("threads")

    assert failed.output.count(" of 5") == 1
    assert "3 of 5" in failed.output


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("plain", "plain"),
        ("a {1 + 1} b", "a 2 b"),
        ("{{}} {'x'}", "{} x"),
        ("{'a'}{'b'}", "ab"),
        ('quotes " and \' and {"both"}', "quotes \" and ' and both"),
    ],
)
def test_messages_have_expressions_in_braces(message: str, text: str) -> None:
    assert eval(message_expression(message)) == text


@pytest.mark.parametrize("message", ["{", "a } b", "{1 +}", "{}"])
def test_messages_that_make_no_sense_are_refused(message: str) -> None:
    with pytest.raises(UsageError):
        message_expression(message)


@pytest.mark.parametrize(
    ("filters", "options", "stops"),
    [
        (["uncaught"], [], ["RuntimeError"]),
        (["raised"], [], ["RuntimeError"]),
        ([], [{"filterId": "type", "condition": "own RuntimeError"}], ["RuntimeError"]),
        ([], [{"filterId": "raised", "condition": "number > 100"}], []),
    ],
)
def test_exceptions(
    client: DapClient, failing_recording: Path, filters: list[str], options: list[dict[str, str]], stops: list[str]
) -> None:
    client.attach(failing_recording, stopOnEntry=True)
    found = client.request("setExceptionBreakpoints", filters=filters, filterOptions=options)["breakpoints"]
    assert [each["verified"] for each in found] == [True]

    seen = []
    while client.move("continue")["reason"] == "exception":
        info = client.request("exceptionInfo", threadId=client.main)
        seen.append(info["exceptionId"])
        assert (client.line, info["breakMode"]) == (30, "unhandled")

    assert seen == stops


def test_exceptions_that_cannot_be_are_not_verified(client: DapClient, lanes_recording: Path) -> None:
    client.attach(lanes_recording)
    options = [{"filterId": "type", "condition": each} for each in ("NoSuch", "", "A B")]
    found = client.request("setExceptionBreakpoints", filters=["uncaught", "odd"], filterOptions=options)

    assert [each["verified"] for each in found["breakpoints"]] == [False] * 5


def test_breakpoint_locations_are_the_lines_that_ran(failed: DapClient) -> None:
    source = failed.stack()[0]["source"]
    found = failed.request("breakpointLocations", source=source, line=10, endLine=16)["breakpoints"]

    assert [each["line"] for each in found] == [10, 12, 13, 16]


def test_a_value_is_followed_back_to_the_line_that_wrote_it(failed: DapClient) -> None:
    scope = failed.request("scopes", frameId=failed.stack()[0]["id"])["scopes"][0]["variablesReference"]
    account = failed.parts(scope)["account"]
    info = failed.request("dataBreakpointInfo", variablesReference=account["variablesReference"], name="balance")
    assert info["description"] == "account.balance"
    again = failed.request("dataBreakpointInfo", name="account.balance", frameId=failed.stack()[0]["id"])
    assert again["dataId"] == info["dataId"]
    (point,) = failed.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])["breakpoints"]

    stop = failed.move("reverseContinue")

    assert (stop["reason"], stop["hitBreakpointIds"], failed.line) == ("data breakpoint", [point["id"]], 27)
    assert "account.balance was written" in failed.output
    assert "after   7" in failed.output
    stop = failed.move("reverseContinue")
    assert (stop["reason"], failed.line) == ("data breakpoint", 7)
    stop = failed.move("continue")
    assert stop["reason"] == "data breakpoint"


def follow(client: DapClient, name: str, scope: int = 0) -> None:
    """Set a data breakpoint on a variable of the innermost frame."""
    scopes = client.request("scopes", frameId=client.stack()[0]["id"])["scopes"]
    info = client.request("dataBreakpointInfo", name=name, variablesReference=scopes[scope]["variablesReference"])
    (point,) = client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])["breakpoints"]
    assert point["verified"], point


def test_a_local_variable_is_followed_in_its_own_call(failed: DapClient) -> None:
    set_lines(failed, {"line": 13, "condition": "n == 3"})
    failed.move("reverseContinue")
    set_lines(failed)
    follow(failed, "doubled")

    assert failed.move("reverseContinue")["reason"] == "data breakpoint"
    assert (failed.line, failed.local()["n"]["value"]) == (12, "3")
    assert failed.move("reverseContinue")["reason"] == "start"


def test_a_variable_of_the_module_is_followed_where_another_call_runs(failed: DapClient) -> None:
    set_lines(failed, {"line": 13, "condition": "n == 3"})
    failed.move("reverseContinue")
    set_lines(failed)
    follow(failed, "results", scope=1)

    assert failed.move("reverseContinue")["reason"] == "data breakpoint"
    assert failed.line == 22
    assert "__main__.results" in failed.output
    failed.move("continue")
    failed.move("continue")
    assert failed.local()["results"]["value"] == "[0, 2, 4, 6]"


def test_a_value_that_cannot_be_followed_has_no_breakpoint(failed: DapClient) -> None:
    frame = failed.stack()[0]["id"]

    assert failed.request("dataBreakpointInfo", name="1 + 1", frameId=frame)["dataId"] is None
    found = failed.request("setDataBreakpoints", breakpoints=[{"dataId": "of another session"}])["breakpoints"]
    assert found[0]["verified"] is False


def test_why_says_who_wrote_a_value(failed: DapClient) -> None:
    frame = failed.stack()[0]["id"]
    found = failed.request("why", expression="account.balance", frameId=frame)

    assert found["line"] == 27
    assert "account.balance was written" in found["text"]
    failed.request("seek", moment=found["moment"])
    failed.event("stopped")
    assert failed.line == 27
