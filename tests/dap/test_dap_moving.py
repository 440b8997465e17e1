"""Motions in both directions, and moments to go to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.dap_client import DapClient


def test_it_opens_at_the_failure_and_shows_what_was_printed(client: DapClient, failing_recording: Path) -> None:
    stop = client.attach(failing_recording)

    assert stop["reason"] == "exception"
    assert stop["text"] == "raises RuntimeError: hidden"
    assert client.line == 30
    assert "balance 7\n" in client.output


@pytest.mark.parametrize(
    ("options", "reason", "line"),
    [({"stopOnEntry": True}, "entry", 1), ({"at": "@out:1"}, "goto", 28), ({"at": "@end"}, "goto", 30)],
)
def test_it_opens_where_the_client_wants(
    client: DapClient, failing_recording: Path, options: dict[str, object], reason: str, line: int
) -> None:
    stop = client.attach(failing_recording, **options)

    assert (stop["reason"], client.line) == (reason, line)


def test_steps_go_back_and_forth(failed: DapClient) -> None:
    lines = []
    for command in ("stepBack", "stepBack", "next", "reverseStepIn", "reverseStepIn", "stepIn", "next", "next"):
        stop = failed.move(command)
        lines.append((failed.line, stop["reason"]))

    assert [line for line, _ in lines] == [28, 27, 28, 27, 16, 27, 28, 30]
    assert {reason for _, reason in lines} == {"step"}


def test_steps_back_go_over_calls_or_into_them_or_out(failed: DapClient) -> None:
    failed.request("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
    failed.move("reverseContinue")
    failed.request("setFunctionBreakpoints", breakpoints=[])

    assert failed.line == 12
    failed.move("reverseStepOut")
    assert failed.line == 22
    failed.move("next")
    assert failed.line == 21
    failed.move("reverseStepIn")
    assert failed.line == 13


def test_a_stop_follows_even_if_nothing_moved(failed: DapClient) -> None:
    stop = failed.move("reverseContinue")
    assert (stop["reason"], failed.line) == ("start", 1)
    failed.move("reverseContinue")

    for _ in range(2):
        stop = failed.move("stepBack")
        assert (stop["reason"], stop["description"]) == ("start", "At the start of the run")
    failed.request("seek", moment="@end")
    failed.event("stopped")
    stop = failed.move("continue")
    assert stop["reason"] == "end"
    assert "ended with status 1" in stop["text"]


def test_a_stop_comes_behind_its_response(failed: DapClient) -> None:
    seq = failed.send("stepBack", {"threadId": failed.main})
    failed.event("stopped")

    order = [each for each in failed.messages if each.get("request_seq") == seq or each.get("event") == "stopped"]
    assert [each["type"] for each in order[-2:]] == ["response", "event"]


def test_a_line_has_a_target_for_each_visit(failed: DapClient) -> None:
    source = failed.stack()[0]["source"]
    targets = failed.request("gotoTargets", source=source, line=12)["targets"]

    assert [each["label"].partition(",")[0] for each in targets] == [f"visit {n} of 5" for n in range(1, 6)]
    failed.request("goto", threadId=failed.main, targetId=targets[3]["id"])
    assert failed.event("stopped")["reason"] == "goto"
    assert failed.local()["n"]["value"] == "3"
    assert "earlier stop" in failed.refused("goto", threadId=failed.main, targetId=targets[3]["id"])


def test_a_line_that_never_ran_has_the_targets_of_the_next_one_that_did(failed: DapClient) -> None:
    source = failed.stack()[0]["source"]

    assert len(failed.request("gotoTargets", source=source, line=11)["targets"]) == 5
    assert "never ran" in failed.refused("gotoTargets", source=source, line=300)


def test_a_frame_is_restarted_at_the_first_line_of_its_activation(failed: DapClient) -> None:
    failed.request("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
    failed.move("reverseContinue")
    failed.move("next")
    assert failed.line == 13

    frame = failed.stack()[0]
    assert frame["canRestart"]
    failed.request("restartFrame", frameId=frame["id"])
    assert failed.event("stopped")["reason"] == "goto"
    assert (failed.line, failed.local()["n"]["value"]) == (12, "4")
    failed.request("restartFrame", frameId=failed.stack()[1]["id"])
    failed.event("stopped")
    assert failed.line == 1


def test_moments_are_sought_by_name(failed: DapClient) -> None:
    assert "No such moment" in failed.refused("seek", moment="@nowhere")
    failed.request("seek", moment="@start")
    assert failed.event("stopped")["reason"] == "goto"
    failed.request("seek", moment="@exc")
    failed.event("stopped")
    assert failed.line == 30


def test_output_is_shown_once_as_the_session_comes_to_it(client: DapClient, failing_recording: Path) -> None:
    client.attach(failing_recording, stopOnEntry=True)
    assert client.output == ""

    client.move("continue")
    client.move("reverseContinue")
    client.move("continue")

    assert client.output.count("balance 7\n") == 1


def test_just_my_code_passes_over_libraries(client: DapClient, lanes_recording: Path) -> None:
    client.attach(lanes_recording, justMyCode=True, stopOnEntry=True)
    for _ in range(4):
        client.move("stepIn")

    assert client.stack()[0]["source"]["name"] == "lanes_and_tasks.py"


def test_a_step_of_another_thread_goes_to_its_own_line(lanes: DapClient) -> None:
    lanes.request("setBreakpoints", source=lanes.stack()[-1]["source"], breakpoints=[{"line": 19}])
    lanes.move("reverseContinue")
    threads = {each["name"].strip(): each["id"] for each in lanes.request("threads")["threads"]}
    worker = next(number for name, number in threads.items() if "worker" in name)
    assert lanes.stack(worker)[-1]["name"] == "Thread._bootstrap"

    lanes.request("stepOut", threadId=worker)

    assert lanes.event("stopped")["threadId"] == worker
    assert "unknown" in lanes.refused("stepOut", threadId=worker + 50)
