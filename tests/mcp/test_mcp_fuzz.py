"""Whatever a client sends, the server answers the next question."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replaydbg.mcp.tool_table import tools_offered
from tests.harness.mcp_client import MODERN, McpClient

ROUNDS = 250

ODD: list[Any] = [None, True, -1, 0, 1 << 70, 1.5, "", "a", "\ud800", "\x00\x1b[2J", "é" * 3000, [], [[]], {}, {"a": 1}]
METHODS = ["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/cancelled", "x", "", 7]
NAMES = [*tools_offered(is_run_allowed=False), "run", "nothing", 3]


def odd_message(chance: random.Random, recording: str) -> Any:
    """Return a message that is wrong in some way, or in none."""
    tool = chance.choice(list(tools_offered(is_run_allowed=False).values()))
    arguments: dict[Any, Any] = {"recording": recording}
    for name in chance.sample(sorted(tool.properties), chance.randrange(len(tool.properties) + 1)):
        arguments[name] = chance.choice([*ODD, "number", "results[0]", "@exc", "1:2", "@start", 1, ["number"]])
    arguments.setdefault("at", "@exc")
    params: Any = {"name": tool.name if chance.random() < 0.8 else chance.choice(NAMES), "arguments": arguments}
    params["_meta"] = MODERN if chance.random() < 0.8 else chance.choice(ODD)
    message: Any = {"jsonrpc": "2.0", "id": chance.randrange(1, 1 << 30), "method": "tools/call", "params": params}
    for _ in range(chance.choice([0, 0, 1, 2])):
        place = chance.choice([message, params])
        place[chance.choice(sorted(map(str, place)))] = chance.choice([*ODD, *METHODS])
    return message if chance.random() < 0.95 else chance.choice(ODD)


def damaged(chance: random.Random, line: bytes) -> bytes:
    """Return bytes with some of them changed, or cut."""
    data = bytearray(line)
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data if chance.random() < 0.9 else data[: chance.randrange(len(data))]) + b"\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2))
def test_a_server_survives_any_messages(clients: Callable[..., McpClient], failing_recording: Path, seed: int) -> None:
    chance, client = random.Random(seed), clients()

    for number in range(ROUNDS):
        client.send_bytes(damaged(chance, json.dumps(odd_message(chance, str(failing_recording))).encode()))
        if number % 50 == 49:
            answer = client.ask("look", recording=str(failing_recording), expressions=["number"])
            assert answer["recorded"]["values"] == ["number = 4"]

    for each in client.messages:
        assert each["jsonrpc"] == "2.0"
        assert each.get("error", {}).get("code") != -32603, each
        if "result" in each and "content" in each["result"]:
            assert len(each["result"]["content"][0]["text"].encode()) <= 4096
    assert client.process.poll() is None
