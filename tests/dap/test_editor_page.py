"""The configurations in docs/how-to/debug-in-an-editor.md do what the page says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.dap_client import DapClient
from tests.harness.process import run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.pages.blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "how-to" / "debug-in-an-editor.md"
PROGRAM = "total = 3\nassert total == 4\n"
TEST = "def test_total():\n    total = 3\n    assert total == 4\n"


def blocks(language: str) -> list[str]:
    return [each.text for each in blocks_of(PAGE) if each.language == language]


def configurations() -> list[dict[str, Any]]:
    """Every configuration of the page, in the formats of its editors."""
    found: list[dict[str, Any]] = []
    for each in map(json.loads, blocks("json")):
        rows = each if isinstance(each, list) else each.get("configurations", [each])
        found += [row for row in rows if "request" in row]
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a program and a test that fail, both recorded."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    (folder / "orders.py").write_text(PROGRAM)
    (folder / "tests" / "test_orders.py").write_text(TEST)
    environ = {**without_steering(os.environ), "REPLAYDBG_STORE": str(folder / "store")}
    record = [sys.executable, "-m", "replaydbg", "record", "-q", "--children=none", "orders.py"]
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--replaydbg=retain-on-failure"]
    for command in (record, tests):
        run(command, cwd=folder, env=environ, timeout=100)
    return folder


def filled(configuration: dict[str, Any], project: Path) -> dict[str, Any]:
    text = json.dumps(configuration)
    for name in ("${workspaceFolder}", "$ContentRoot$"):
        text = text.replace(name, str(project))
    for name in ("${file}", "$ZED_FILE"):
        text = text.replace(name, str(project / "orders.py"))
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_page_has_configurations_of_both_kinds() -> None:
    assert {each["request"] for each in configurations()} == {"launch", "attach"}
    assert len(configurations()) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("configuration", configurations(), ids=lambda each: each.get("name") or each["request"])
def test_a_configuration_leads_to_the_failure(configuration: dict[str, Any], project: Path) -> None:
    with DapClient(project, environ={"REPLAYDBG_STORE": str(project / "store")}) as client:
        client.initialize()
        client.request(configuration["request"], **filled(configuration, project))
        client.event("initialized")
        client.request("configurationDone")

        stop = client.event("stopped")

        assert stop["reason"] == "exception"
        assert "AssertionError" in stop["text"]
        assert client.local()["total"]["value"] == "3"


@pytest.mark.slow
def test_the_file_for_zed_starts_the_server(project: Path, tmp_path: Path) -> None:
    (text,) = blocks("python")
    script = tmp_path / "adapter"
    script.write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, str(script), "--host=127.0.0.1", f"--port={port}"]

    with subprocess.Popen(command, cwd=project, env={**os.environ, "PATH": path}, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        wait_until(process.stderr.readline)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            client = DapClient(project, connection=connection)
            assert client.attach(next((project / "store").glob("*.rdbg")))
            client.request("disconnect")

        assert process.wait(60) == 0
