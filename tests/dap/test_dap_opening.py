"""What `attach` and `launch` open, and the source files of what they have opened."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.dap_client import DapClient
from tests.harness.process import run
from tests.harness.recorded_group import BANK, record_program
from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering
from tests.harness.typed import FAILS

TEST = """\
def total(prices):
    return sum(prices) - 1


def test_total():
    assert total([1, 2]) == 3


def test_other():
    assert total([]) == 0
"""


def test_a_recording_is_named_by_its_path_or_beside_the_working_directory(
    clients: Callable[[], DapClient], failing_recording: Path
) -> None:
    short = {"cwd": str(failing_recording.parent)}

    assert clients().attach(failing_recording)["reason"] == "exception"
    assert clients().attach(failing_recording.name, **short)["reason"] == "exception"
    assert clients().attach(failing_recording.stem, **short)["reason"] == "exception"


def test_a_recording_of_the_store_is_named_as_in_commands(tmp_path: Path) -> None:
    environ = {"REPLAYDBG_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "--children=none", str(FAILS)]
    run(command, cwd=tmp_path, env={**without_steering(os.environ), **environ}, timeout=60)

    for name in ("latest", "run-1"):
        with DapClient(tmp_path, environ=environ) as client:
            assert client.attach(name)["reason"] == "exception"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recording": "nowhere.rdbg"}, "nowhere.rdbg"),
        ({"recording": ""}, "needs 'recording'"),
        ({"recording": 7}, "must be a string"),
        ({"recording": __file__}, "not a recording"),
        ({"test": "test_nothing"}, "No recording of the test"),
        ({"recording": "x", "pathMappings": [{"localRoot": "/a"}]}, "x"),
    ],
)
def test_what_cannot_be_opened_is_refused(client: DapClient, arguments: dict[str, object], message: str) -> None:
    client.initialize()

    assert message in client.refused("attach", **arguments)
    assert "send 'launch' or 'attach'" in client.refused("threads")


def test_a_moment_that_does_not_exist_is_refused(client: DapClient, failing_recording: Path) -> None:
    client.initialize()

    assert "No such moment" in client.refused("attach", recording=str(failing_recording), at="@nowhere")
    client.request("attach", recording=str(failing_recording), at="@start")


def test_results_of_tests_are_named_by_their_tests(clients: Callable[[], DapClient], tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--replaydbg=retain-on-failure"]
    run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=100)
    (folder,) = (each.parent for each in tmp_path.glob("test-results/*test_total/rec.rdbg"))

    for arguments in ({"recording": str(folder)}, {"test": "test_shop.py::test_total", "cwd": str(tmp_path)}):
        client = clients()
        client.initialize()
        client.request("attach", **arguments)
        client.request("configurationDone")
        assert client.event("stopped")["reason"] == "exception"
        frame = next(each for each in client.stack() if each.get("presentationHint") != "subtle")
        assert (frame["name"], frame["line"]) == ("test_total", 6)


# ---- groups ----


def test_processes_of_a_group_are_opened_when_they_are_looked_at(
    clients: Callable[[], DapClient], tmp_path: Path
) -> None:
    directory = record_program(tmp_path, BANK)
    client = clients()
    client.attach(directory / "1.rdbg")

    threads = {each["name"]: each["id"] for each in client.request("threads")["threads"]}

    assert [name.partition(":")[0] for name in threads] == ["process 1", "process 2"]
    child = threads[next(name for name in threads if name.startswith("process 2"))]
    frame = client.stack(child)[0]
    assert frame["source"]["name"] == "prog.py"
    assert client.request("evaluate", expression="asked < ask", frameId=frame["id"])["result"] == "True"
    client.request("stepBack", threadId=child)
    assert client.event("stopped")["threadId"] == child
    client.console("proc 1")
    assert client.event("stopped")["threadId"] == threads[next(iter(threads))]


# ---- programs ----


def test_a_program_is_recorded_and_opened_at_its_failure(client: DapClient, tmp_path: Path) -> None:
    client.initialize()
    environ = {"REPLAYDBG_STORE": str(tmp_path / "store"), "HOME": None}
    client.request("launch", program=str(FAILS), cwd=str(tmp_path), output="fails.rdbg", env=environ)
    client.request("configurationDone")

    assert client.event("stopped")["reason"] == "exception"
    assert client.line == 30
    assert list(tmp_path.glob("fails.rdbg*"))
    assert client.output.count("balance 7\n") == 1
    assert "RuntimeError: hidden" in client.output
    assert "schema_version" not in client.output


def test_code_and_modules_are_recorded_with_arguments_and_without_a_failure(
    clients: Callable[[], DapClient], tmp_path: Path
) -> None:
    (tmp_path / "mod.py").write_text("import sys\nprint(sys.argv[1:])\n")
    options = {"cwd": str(tmp_path), "env": {"REPLAYDBG_STORE": str(tmp_path / "store")}}

    for program in ({"module": "mod"}, {"code": "import sys; print(sys.argv[1:])"}):
        client = clients()
        client.initialize()
        client.request("launch", args=["a b", "c"], recordOptions=["--children=none"], **options, **program)
        client.request("configurationDone")
        assert client.event("stopped")["reason"] == "end"
        assert "['a b', 'c']\n" in client.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs one of"),
        ({"program": "a.py", "module": "a"}, "needs one of"),
        ({"program": "nowhere.py"}, "nowhere.py"),
        ({"program": "a.py", "cwd": "/dev/null/nowhere"}, "is not a directory"),
        ({"program": "a.py", "recordOptions": ["--no-such"]}, "no-such"),
    ],
)
def test_what_cannot_be_recorded_is_refused(client: DapClient, arguments: dict[str, object], message: str) -> None:
    client.initialize()

    assert message in client.refused("launch", **arguments)


def test_a_program_that_is_recorded_is_ended_by_terminate(client: DapClient, tmp_path: Path) -> None:
    # It sleeps: the end of it is what is tested.
    (tmp_path / "waits.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    client.initialize(supportsProgressReporting=True)
    environ = {"REPLAYDBG_STORE": str(tmp_path / "store")}
    launching = client.send("launch", {"program": "waits.py", "cwd": str(tmp_path), "env": environ})
    assert client.progress_of(launching)["title"] == "recording the program"
    while "here\n" not in client.output:
        client.next_message()

    client.request("terminate")

    assert client.response_to(launching)["message"] == "cancelled"
    client.request("disconnect")


# ---- source files ----


def test_a_file_with_the_recorded_text_is_named_by_its_path(failed: DapClient) -> None:
    source = failed.stack()[0]["source"]

    assert (source["path"], source.get("sourceReference", 0)) == (str(FAILS), 0)
    assert source in failed.request("loadedSources")["sources"]


def test_a_file_that_has_changed_or_gone_is_shown_as_recorded(clients: Callable[[], DapClient], tmp_path: Path) -> None:
    program = tmp_path / "prog.py"
    program.write_text("a = 1\nb = 2\nraise ValueError(a)\n")
    recording = record_file(program, tmp_path, status=1)

    for change in (lambda: program.write_text("# another one\n"), program.unlink):
        change()
        client = clients()
        client.attach(recording)
        source = client.stack()[0]["source"]
        assert client.request("source", source=source, sourceReference=source["sourceReference"]) == {
            "content": "a = 1\nb = 2\nraise ValueError(a)",
            "mimeType": "text/x-python",
        }
        assert "as recorded" in source["origin"]
        found = client.request("setBreakpoints", source=source, breakpoints=[{"line": 2}])["breakpoints"]
        assert found[0]["verified"]
        client.move("reverseContinue")
        assert client.line == 2
    assert "unknown" in client.refused("source", sourceReference=99)


def test_directories_of_another_machine_are_mapped(clients: Callable[[], DapClient], tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    (there / "prog.py").write_text("a = 1\nb = 2\nraise ValueError(a)\n")
    recording = record_file(there / "prog.py", tmp_path, status=1)
    shutil.move(there, here)
    client = clients()

    client.attach(recording, pathMappings=[{"localRoot": str(here), "remoteRoot": str(there)}])

    assert client.stack()[0]["source"]["path"] == str(here / "prog.py")
    found = client.request("setBreakpoints", source={"path": str(here / "prog.py")}, breakpoints=[{"line": 2}])
    assert found["breakpoints"][0]["verified"]
    client.move("reverseContinue")
    assert client.line == 2


def test_the_exception_that_is_handled_is_described(lanes: DapClient) -> None:
    lanes.request("setBreakpoints", source=lanes.stack()[0]["source"], breakpoints=[{"line": 40}])
    lanes.move("reverseContinue")

    info = lanes.request("exceptionInfo", threadId=lanes.main)

    assert (info["exceptionId"], info["breakMode"]) == ("KeyError", "never")
    lanes.request("seek", moment="@start")
    lanes.event("stopped")
    assert "No exception" in lanes.refused("exceptionInfo", threadId=lanes.main)
