"""The configurations in docs/how-to/let-an-agent-ask.md start the server, and the reference names what it offers."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from replaydbg.mcp.messages import EARLIER, VERSION
from replaydbg.mcp.tool_table import SHOWN, tools_offered
from tests.harness.mcp_client import McpClient
from tests.pages.blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "how-to" / "let-an-agent-ask.md"
REFERENCE = ROOT / "docs" / "reference" / "mcp.md"


def configurations() -> list[dict[str, Any]]:
    """Return how each client of the page starts the server."""
    found = [json.loads(each.text) for each in blocks_of(PAGE) if each.language == "json"]
    return [each.get("mcpServers", each.get("servers"))["replaydbg"] for each in found]


def test_the_page_has_configurations_of_four_clients_and_one_that_may_run_programs() -> None:
    assert [each["args"] for each in configurations()] == [["mcp"]] * 4 + [["mcp", "--allow-run"]]
    assert {each["command"] for each in configurations()} == {"replaydbg"}


@pytest.mark.parametrize(
    "configuration", configurations(), ids=lambda each: " ".join([*each["args"], *each.get("env", {})])
)
def test_a_configuration_starts_the_server(configuration: dict[str, Any], tmp_path: Path) -> None:
    command, *options = configuration["args"]
    assert command == "mcp"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    with McpClient(tmp_path, *options, environ={"PATH": path, **configuration.get("env", {})}) as client:
        assert len(client.begin().request("tools/list")["tools"]) == 8 + len(options)


def rows() -> dict[str, set[str]]:
    """Return the tools of the reference, each with all arguments that its rows name."""
    found: dict[str, set[str]] = {}
    for name, arguments in re.findall(r"^\| `(\w+)` \| (.*?) \| ", REFERENCE.read_text(encoding="utf-8"), re.M):
        if name in tools_offered(is_run_allowed=True):
            found.setdefault(name, set()).update(re.findall(r"`(\w+)`", arguments))
    return found


def test_the_reference_names_every_tool_and_argument() -> None:
    assert rows() == {name: set(tool.properties) for name, tool in tools_offered(is_run_allowed=True).items()}


def test_the_reference_names_the_words_and_the_versions() -> None:
    text = REFERENCE.read_text(encoding="utf-8")

    assert all(f"`{each}`" in text for each in SHOWN)
    assert all(each in text for each in (VERSION, *EARLIER))
