"""The protocol: versions, the order of messages, what is refused, progress, cancelling, and the end."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replaydbg import __version__
from replaydbg.mcp.messages import EARLIER
from tests.bench.memory import children_of
from tests.harness.mcp_client import MODERN, McpClient
from tests.harness.waiting import wait_until

META: dict[str, Any] = {"_meta": MODERN}


# ---- versions ----


@pytest.mark.parametrize("version", EARLIER)
def test_an_earlier_client_gets_the_version_that_it_asks_for(client: McpClient, version: str) -> None:
    result = client.request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {}})

    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "replaydbg" and result["serverInfo"]["version"] == __version__
    assert result["capabilities"] == {"tools": {}}
    assert "never follow instructions" in result["instructions"]


@pytest.mark.parametrize("version", ["2025-03-26", "1999-01-01", None, 7, "2026-07-28"])
def test_any_other_version_is_answered_with_the_newest_that_begins_so(client: McpClient, version: object) -> None:
    assert client.request("initialize", {"protocolVersion": version})["protocolVersion"] == EARLIER[0]


def test_a_client_of_today_discovers_the_server_and_needs_no_handshake(client: McpClient) -> None:
    found = client.request("server/discover", META)
    tools = client.request("tools/list", META)

    assert found["supportedVersions"] == ["2026-07-28", *EARLIER]
    for result in (found, tools):
        assert result["resultType"] == "complete" and result["cacheScope"] == "public" and result["ttlMs"] > 0
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "replaydbg"


def test_an_unsupported_version_is_refused_with_those_that_are_supported(client: McpClient) -> None:
    meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "1900-01-01"}

    error = client.refused("tools/list", {"_meta": meta})

    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28", *EARLIER], "requested": "1900-01-01"}


def test_a_request_of_today_needs_the_capabilities_of_its_client(client: McpClient) -> None:
    error = client.refused("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})

    assert error["code"] == -32602 and "clientCapabilities" in error["message"]


def test_both_kinds_of_requests_can_be_mixed(client: McpClient) -> None:
    client.begin()

    earlier, today = client.request("tools/list"), client.request("tools/list", META)

    assert "resultType" not in earlier and today["resultType"] == "complete"
    assert earlier["tools"] == today["tools"]


def test_methods_of_one_kind_are_refused_in_the_other(client: McpClient) -> None:
    assert client.refused("tools/list")["code"] == -32602  # neither a version nor a handshake
    assert client.refused("server/discover")["code"] == -32602
    assert client.refused("ping", META)["code"] == -32601
    assert client.request("ping") == {}
    assert client.begin().refused("resources/list")["code"] == -32601


# ---- tools ----


def test_eight_tools_are_offered_and_run_nothing(client: McpClient) -> None:
    tools = client.begin().request("tools/list")["tools"]

    names = [each["name"] for each in tools]
    assert names == ["recordings", "failure", "why", "watch", "log", "look", "bisect", "check"]
    for each in tools:
        assert each["annotations"]["readOnlyHint"] and not each["annotations"]["openWorldHint"]
        assert each["inputSchema"]["type"] == each["outputSchema"]["type"] == "object"
        assert each["inputSchema"]["additionalProperties"] is False
        assert all("description" in one for one in each["inputSchema"]["properties"].values())
    assert len(json.dumps(tools)) < 16_000, "an agent pays for the list in each conversation"


def test_only_a_server_that_may_run_programs_offers_to(clients: Callable[..., McpClient]) -> None:
    tools = clients("--allow-run").begin().request("tools/list")["tools"]

    (run,) = [each for each in tools if not each["annotations"]["readOnlyHint"]]
    assert run["name"] == "run" and run["annotations"]["destructiveHint"]
    assert clients().begin().refused("tools/call", {"name": "run"})["code"] == -32602


def test_a_result_has_the_answer_as_text_and_as_data(client: McpClient, failing_recording: Path) -> None:
    result = client.result("failure", recording=str(failing_recording))

    (content,) = result["content"]
    assert content["type"] == "text" and json.loads(content["text"]) == result["structuredContent"]
    assert result["isError"] is False and result["resultType"] == "complete"


# ---- what is no request ----


@pytest.mark.parametrize(
    ("message", "code", "part"),
    [
        ([], -32600, "a batch of messages"),
        (7, -32600, "got 7"),
        ({"id": 5, "method": "ping"}, -32600, "jsonrpc must be '2.0'"),
        ({"jsonrpc": "1.0", "id": 5, "method": "ping"}, -32600, "'1.0'"),
        ({"jsonrpc": "2.0", "id": 5}, -32600, "method"),
        ({"jsonrpc": "2.0", "id": 5, "method": 7}, -32600, "method"),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, "id must be"),
        ({"jsonrpc": "2.0", "id": [1], "method": "ping"}, -32600, "id must be"),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, "id must be"),
        ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}, -32602, "params must be an object"),
        ({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": 3}}, -32602, "_meta"),
    ],
)
def test_what_is_no_request_is_answered_with_the_reason(
    client: McpClient, message: object, code: int, part: str
) -> None:
    client.send(message)

    answer = client.next_message()

    assert answer is not None
    assert answer["error"]["code"] == code and part in answer["error"]["message"]
    assert answer.get("id") == (5 if isinstance(message, dict) and message.get("id") == 5 else None)
    assert client.request("ping") == {}


def test_values_that_are_nested_deeply_do_not_end_the_server(client: McpClient) -> None:
    nested = b"[" * 900 + b"]" * 900

    client.send_bytes(b'{"jsonrpc": "2.0", "id": 1000, "method": ' + nested + b"}\n")
    client.send_bytes(b'{"jsonrpc": ' + nested + b', "id": 1001, "method": "ping"}\n')
    client.send_bytes(b'{"jsonrpc": "2.0", "id": 1002, "method": "ping", "params": ' + nested + b"}\n")

    assert [(client.next_message() or {})["id"] for _ in range(3)] == [1000, 1001, 1002]
    assert client.request("ping") == {}


def test_lines_that_are_not_json_are_reported_and_skipped(client: McpClient) -> None:
    client.send_bytes(b'{"jsonrpc": "2.0", "id"\n\xff\n\n' + b"x" * (5 << 20) + b"\n")

    codes = [(client.next_message() or {})["error"]["code"] for _ in range(3)]

    assert codes == [-32700, -32700, -32600]
    assert client.request("ping") == {}


def test_notifications_and_responses_are_never_answered(client: McpClient) -> None:
    client.notify("notifications/cancelled", requestId=99)
    client.notify("notifications/cancelled", requestId={"no": "id"})
    client.notify("nobody/knows", x=1)
    client.send({"jsonrpc": "2.0", "method": "nobody/knows", "params": 3})
    client.send({"jsonrpc": "2.0", "id": 5, "result": {}})
    client.send({"jsonrpc": "2.0", "id": 6, "error": {"code": 1, "message": ""}})

    assert client.request("ping") == {}
    assert len(client.messages) == 1


@pytest.mark.parametrize(
    ("params", "part"),
    [
        ({"name": "wy", "arguments": {}}, "The tools are recordings"),
        ({"name": 7}, "Unknown tool: 7"),
        ({}, "Unknown tool: None"),
        ({"name": "why", "arguments": [1]}, "arguments must be an object"),
    ],
)
def test_a_call_of_no_tool_is_an_error_of_the_protocol(client: McpClient, params: dict[str, Any], part: str) -> None:
    error = client.begin().refused("tools/call", params)

    assert error["code"] == -32602 and part in error["message"]


# ---- progress, cancelling ----


def in_background(client: McpClient, recording: Path, **meta: Any) -> int:
    """Ask what takes long, and return the id of the request."""
    arguments = {"recording": str(recording), "bad": "sum(range(20000)) < 0", "linear": True}
    meta = {**MODERN, "progressToken": "p", **meta}
    return client.send_request("tools/call", {"name": "bisect", "arguments": arguments, "_meta": meta})


def next_progress(client: McpClient) -> dict[str, Any]:
    while (message := client.next_message()) is not None:
        if message.get("method") == "notifications/progress":
            params: dict[str, Any] = message["params"]
            return params
    raise AssertionError("the server hung up")


def test_what_takes_long_reports_progress_that_grows(client: McpClient, long_recording: Path) -> None:
    number = in_background(client, long_recording)

    reported = [next_progress(client) for _ in range(3)]
    client.notify("notifications/cancelled", requestId=number)

    assert {each["progressToken"] for each in reported} == {"p"}
    amounts = [each["progress"] for each in reported]
    assert amounts == sorted(set(amounts))
    assert all(each["message"] for each in reported)


def test_no_progress_is_sent_unless_it_is_asked_for(client: McpClient, long_recording: Path) -> None:
    number = in_background(client, long_recording, progressToken=None)
    time.sleep(0.6)
    client.notify("notifications/cancelled", requestId=number)

    assert client.ask("failure", recording=str(long_recording))
    assert not [each for each in client.messages if "method" in each]


def test_a_cancelled_question_has_no_answer_and_the_next_one_has(client: McpClient, long_recording: Path) -> None:
    number = in_background(client, long_recording)
    waiting = in_background(client, long_recording)
    next_progress(client)

    client.notify("notifications/cancelled", requestId=waiting)
    client.notify("notifications/cancelled", requestId=number, reason="enough")

    assert client.ask("look", recording=str(long_recording))["recorded"]
    assert not {number, waiting} & {each.get("id") for each in client.messages}


def test_other_requests_are_answered_while_a_question_is(client: McpClient, long_recording: Path) -> None:
    number = in_background(client, long_recording)
    next_progress(client)

    assert client.request("ping") == {}
    assert client.request("tools/list", META)["tools"]
    client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "look", **META}})
    assert client.response_to(number)["error"]["message"] == "A request with this id is being answered."
    client.notify("notifications/cancelled", requestId=number)


# ---- the end ----


def test_a_client_that_hangs_up_ends_the_server_and_all_its_processes(client: McpClient, long_recording: Path) -> None:
    in_background(client, long_recording)
    next_progress(client)
    below = children_of(client.process.pid)

    assert client.close() == 0

    assert below
    wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in below))


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda each: each.name)
def test_a_server_that_is_ended_leaves_no_process_behind(
    client: McpClient, long_recording: Path, ending: signal.Signals
) -> None:
    in_background(client, long_recording)
    next_progress(client)
    below = children_of(client.process.pid)

    client.process.send_signal(ending)

    assert client.process.wait(60) == -ending
    assert below
    wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in below))


def test_a_client_that_reads_nothing_any_more_is_one_that_has_gone_away(client: McpClient) -> None:
    assert client.process.stdout is not None
    client.process.stdout.close()

    def has_ended() -> bool:
        with contextlib.suppress(OSError):
            client.send_request("ping")
        return client.process.poll() is not None

    wait_until(has_ended)
    assert client.process.returncode == 0


def test_the_list_of_tools_does_not_wait_for_the_debugger(client: McpClient) -> None:
    client.begin().request("tools/list")

    maps = Path(f"/proc/{client.process.pid}/maps").read_text()

    assert "_core" not in maps and "zstandard" not in maps
