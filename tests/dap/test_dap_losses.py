"""Processes of the debugger that are lost, and the notice about a recording of somebody else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.bench.memory import children_of
from tests.harness.dap_client import DapClient


def kill_all_below(pid: int) -> None:
    for each in children_of(pid):
        kill_all_below(each)
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_a_session_whose_processes_are_lost_is_opened_again(failed: DapClient) -> None:
    failed.request("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
    failed.move("reverseContinue")
    assert failed.process is not None
    line = failed.line

    kill_all_below(failed.process.pid)
    answer = failed.response_to(failed.send("evaluate", {"expression": "n"}))

    if not answer["success"]:  # else a process of the next checkpoint has answered
        assert "opened again" in answer["message"]
        failed.event("stopped")
    assert failed.line == line
    assert failed.request("evaluate", expression="n")["result"] == "4"
    assert failed.move("reverseContinue")["reason"] == "breakpoint"


def test_a_motion_whose_processes_are_lost_stops_all_the_same(failed: DapClient) -> None:
    thread = failed.main
    assert failed.process is not None

    kill_all_below(failed.process.pid)
    failed.request("stepBack", threadId=thread)

    assert failed.event("stopped")["threadId"] == thread
    assert failed.line in (28, 30)


def test_a_recording_of_somebody_else_is_announced(tmp_path: Path, failing_recording: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path)}  # with another key

    with DapClient(tmp_path, environ=environ) as client:
        client.attach(failing_recording)

        assert "was not recorded by you" in client.output
        assert "behind the fence" in client.output


def test_one_of_the_users_own_is_not(failed: DapClient) -> None:
    assert "not recorded by you" not in failed.output
