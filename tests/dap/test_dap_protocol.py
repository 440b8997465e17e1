"""The server answers whatever a client sends, in whatever order, and ends when the client has gone."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from replaydbg.dap.capabilities import CAPABILITIES
from replaydbg.dap.requests.request_table import HANDLERS
from replaydbg.dap.server import MOVES
from tests.harness.dap_client import DapClient, framed

ALWAYS = {"initialize", "launch", "attach", "disconnect", "terminate", "cancel"}

SAID_BY = {
    "supportsConfigurationDoneRequest": {"configurationDone"},
    "supportsFunctionBreakpoints": {"setFunctionBreakpoints"},
    "supportsStepBack": {"stepBack", "reverseContinue"},
    "supportsRestartFrame": {"restartFrame"},
    "supportsGotoTargetsRequest": {"gotoTargets", "goto"},
    "supportsCompletionsRequest": {"completions"},
    "supportsExceptionInfoRequest": {"exceptionInfo"},
    "supportsLoadedSourcesRequest": {"loadedSources"},
    "supportsTerminateRequest": {"terminate"},
    "supportsDataBreakpoints": {"dataBreakpointInfo", "setDataBreakpoints"},
    "supportsCancelRequest": {"cancel"},
    "supportsBreakpointLocationsRequest": {"breakpointLocations"},
}
"""The requests that a capability is about; others are about arguments of requests that every server has."""

NEEDED_BY_ALL = {
    "setBreakpoints",
    "setExceptionBreakpoints",
    "continue",
    "next",
    "stepIn",
    "stepOut",
    "pause",
    "stackTrace",
    "scopes",
    "variables",
    "source",
    "threads",
    "evaluate",
}
OUR_OWN = {"reverseStepIn", "reverseStepOut", "seek", "why"}


def test_the_capabilities_are_what_there_is() -> None:
    claimed = {each for name, requests in SAID_BY.items() if CAPABILITIES[name] for each in requests}

    assert (HANDLERS.keys() | ALWAYS) == claimed | NEEDED_BY_ALL | OUR_OWN | ALWAYS
    assert set(MOVES) <= HANDLERS.keys()


def test_it_introduces_itself(client: DapClient) -> None:
    assert client.initialize() == json.loads(json.dumps(CAPABILITIES))


def test_requests_in_a_wrong_order_are_refused(client: DapClient, failing_recording: Path) -> None:
    assert "before 'initialize'" in client.refused("attach", recording=str(failing_recording))
    assert "before 'initialize'" in client.refused("threads")
    client.initialize()
    assert "twice" in client.refused("initialize")
    for name in HANDLERS:
        assert "send 'launch' or 'attach'" in client.refused(name)
    assert "Unknown request: 'sing'" in client.refused("sing")
    client.request("attach", recording=str(failing_recording))
    assert "open already" in client.refused("attach", recording=str(failing_recording))
    assert "Unknown request: 'sing'" in client.refused("sing")


def test_every_request_survives_arguments_of_any_type(failed: DapClient) -> None:
    values: tuple[object, ...] = (None, -1, 10**30, "x", [], [1], {}, True, 1.5)
    names = "threadId frameId variablesReference source breakpoints expression text column name line targetId filters"
    for command in HANDLERS:
        for value in values:
            seq = failed.send(command, {each: value for each in names.split()})
            response = failed.response_to(seq)
            assert response["command"] == command
            if not response["success"]:
                text = response["body"]["error"]["variables"]["text"]
                assert text and "Internal error" not in text, (command, value)


@pytest.mark.parametrize(
    "message",
    [
        {"seq": 1, "type": "request"},
        {"seq": "one", "type": "request", "command": "threads"},
        {"seq": 1, "type": "question", "command": "threads"},
        {"seq": 1, "type": "request", "command": "threads", "arguments": []},
    ],
)
def test_what_is_no_request_is_refused(client: DapClient, message: dict[str, object]) -> None:
    client.send_bytes(framed(message))

    answer = client.next_message()

    assert answer is not None
    assert (answer["type"], answer["success"], answer["request_seq"]) == ("response", False, 0)
    client.initialize()


def test_damaged_bytes_never_end_the_server(client: DapClient) -> None:
    draw = random.Random(29)
    whole = framed({"seq": 7, "type": "request", "command": "threads"})
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(data))
            kind = draw.randrange(3)
            if kind == 0:
                data[at] = draw.randrange(256)
            elif kind == 1:
                del data[at:]
                data += b"Content-Length: 1000000000\r\n\r\n"
            else:
                data[at:at] = draw.randbytes(draw.randrange(1, 30))
        client.send_bytes(bytes(data))

    client.initialize()

    assert all(not each["success"] for each in client.messages[:-1])


def test_the_server_ends_when_its_client_goes_away(client: DapClient, failing_recording: Path) -> None:
    client.attach(failing_recording)
    client.send("continue", {"threadId": 1})
    client.close()

    assert client.process is not None
    assert client.process.returncode == 0


def test_the_server_ends_when_its_client_disconnects(failed: DapClient) -> None:
    failed.request("disconnect")

    assert failed.next_message() is None
    assert failed.process is not None
    assert failed.process.wait(60) == 0


def test_a_session_that_is_terminated_is_over(failed: DapClient) -> None:
    failed.request("terminate")

    failed.event("terminated")
    assert "send 'launch' or 'attach'" in failed.refused("threads")


def test_a_cancelled_request_is_answered(clients: Callable[[], DapClient], long_recording: Path) -> None:
    client = clients()
    client.attach(long_recording)
    file = client.stack()[0]["source"]["path"]
    point = {"line": 5, "condition": "__import__('os').getpid() < 0"}
    client.request("setBreakpoints", source={"path": file}, breakpoints=[point])
    running = client.send("reverseContinue", {"threadId": client.main})
    waiting = client.send("evaluate", {"expression": "1"})

    client.request("cancel", requestId=waiting)
    client.request("cancel", requestId=running)

    assert client.event("stopped")["reason"] == "pause"
    assert client.response_to(waiting)["message"] == "cancelled"
    assert client.request("evaluate", expression="1 + 1")["result"] == "2"


def test_a_pause_ends_what_runs_and_shows_progress_until_then(
    clients: Callable[[], DapClient], long_recording: Path
) -> None:
    client = clients()
    client.initialize(supportsProgressReporting=True)
    client.request("attach", recording=str(long_recording))
    client.request("configurationDone")
    client.event("stopped")
    file = client.stack()[0]["source"]["path"]
    point = {"line": 5, "condition": "__import__('os').getpid() < 0"}
    client.request("setBreakpoints", source={"path": file}, breakpoints=[point])
    running = client.send("reverseContinue", {"threadId": client.main})

    started = client.progress_of(running)
    paused = client.send("pause", {"threadId": 1})

    assert started["cancellable"]
    assert client.response_to(paused)["success"]
    assert client.event("stopped")["reason"] == "pause"
    while client.event("progressEnd")["progressId"] != started["progressId"]:
        continue


def test_a_log_point_that_is_cancelled_stops_nothing(clients: Callable[[], DapClient], long_recording: Path) -> None:
    client = clients()
    client.initialize(supportsProgressReporting=True)
    client.request("attach", recording=str(long_recording))
    client.request("configurationDone")
    client.event("stopped")
    file = client.stack()[0]["source"]["path"]
    point = {"line": 5, "logMessage": "{total}", "condition": "__import__('os').getpid() < 0"}
    setting = client.send("setBreakpoints", {"source": {"path": file}, "breakpoints": [point]})

    client.request("cancel", progressId=client.progress_of(setting)["progressId"])

    assert client.request("evaluate", expression="1 + 1")["result"] == "2"
    assert "Cancelled." in client.output
    assert [each["event"] for each in client.events].count("stopped") == 1


def test_the_first_answer_does_not_wait_for_the_debugger() -> None:
    code = "import sys, replaydbg.dap.stdio; print(*sorted(sys.modules))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert "replaydbg.dap.server" in found.stdout.split()
    assert not {"replaydbg.debugger", "replaydbg.commands", "dataclasses", "inspect"} & set(found.stdout.split())
