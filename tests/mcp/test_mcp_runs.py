"""Programs are run only by a server that may, and end with it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from tests.bench.memory import children_of
from tests.harness.mcp_client import MODERN, McpClient
from tests.harness.waiting import wait_until


def test_a_program_is_run_and_its_failure_explained(clients: Callable[..., McpClient], tmp_path: Path) -> None:
    client = clients("--allow-run")
    (tmp_path / "sums.py").write_text("total = 3\nprint('hello')\nassert total == 4\n")

    ran = client.ask("run", command="record", arguments=["sums.py"])
    (question,) = ran["next"]
    failed = client.ask(question["tool"], **question["arguments"])

    assert ran["recorded"]["outcome"] == ["replaydbg record exited with code 1"]
    assert "hello" in ran["recorded"]["output"]
    assert failed["recorded"]["assertion"] == ["false: total == 4"]


def test_what_cannot_be_run_says_why(clients: Callable[..., McpClient]) -> None:
    client = clients("--allow-run")

    assert "one of record, hunt, futures" in client.problem("run", command="rm", arguments=[])
    assert "No such directory: '/no/such'" in client.problem(
        "run", command="record", arguments=["x.py"], directory="/no/such"
    )
    assert "null" in client.problem("run", command="record", arguments=["a\x00b"])
    missing = client.ask("run", command="record", arguments=["no_such_program.py"])
    assert "code 2" in missing["recorded"]["outcome"][0]


def test_a_cancelled_run_ends_its_program_and_keeps_the_recording(
    clients: Callable[..., McpClient], tmp_path: Path
) -> None:
    client = clients("--allow-run")
    number = start_endless(client, tmp_path)

    client.notify("notifications/cancelled", requestId=number)

    wait_until(lambda: not children_of(client.process.pid))
    assert "endless.py" in client.ask("recordings", command="endless.py")["recorded"]["recordings"][0]


def test_a_program_ends_with_a_server_that_is_killed(clients: Callable[..., McpClient], tmp_path: Path) -> None:
    client = clients("--allow-run")
    start_endless(client, tmp_path)
    below = all_below(client.process.pid)

    client.process.send_signal(signal.SIGKILL)

    assert below
    wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in below))


def start_endless(client: McpClient, folder: Path) -> int:
    """Run a program that never ends; return the id of the request when it has begun."""
    (folder / "endless.py").write_text("import time\nopen('begun', 'w').close()\nwhile True:\n    time.sleep(0.01)\n")
    arguments = {"command": "record", "arguments": ["endless.py"]}
    number = client.send_request("tools/call", {"name": "run", "arguments": arguments, "_meta": MODERN})
    wait_until((folder / "begun").exists)
    return number


def all_below(pid: int) -> list[int]:
    found = children_of(pid)
    return [*found, *(each for child in found for each in all_below(child))]
