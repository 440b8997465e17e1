"""`record --keep-failing-requests` keeps what failed and removes the rest, whatever ends the processes."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from replaydbg.log.live_directory import remove_live
from replaydbg.record.sealer.failing import note_failed_request
from tests.harness.process import Finished
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.observe.test_moment import command

pytestmark = pytest.mark.slow

SERVER = """import os, signal, sys, time
from replaydbg.web import WSGIMiddleware

def application(environ, start_response):
    if environ["PATH_INFO"] == "/boom":
        raise ValueError("boom")
    start_response("200 OK", [])
    return [b"ok"]

def serve(*paths):
    for path in paths:
        try:
            served({"REQUEST_METHOD": "GET", "PATH_INFO": path}, lambda *_: None)
        except ValueError:
            pass

def worker(*paths, end=lambda: os._exit(0)):
    if (pid := os.fork()) == 0:
        serve(*paths)
        end()
    return os.waitpid(pid, 0)

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def wait_until(is_so):
    deadline = time.monotonic() + 30
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)

served = WSGIMiddleware(application)
"""


def record(folder: Path, text: str, *options: str) -> Finished:
    """Record a server."""
    (folder / "server.py").write_text(SERVER + text)
    return command(folder, "record", "--keep-failing-requests", *options, "server.py")


def left(folder: Path) -> list[str]:
    """Return the files that are left in the store, those of processes by their names in their group."""
    store = folder / "store"
    return sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.suffix.startswith(".rdbg"))


@pytest.mark.parametrize("children", ["none", "fork", "python"])
def test_a_run_without_failed_requests_leaves_nothing(children: str, tmp_path: Path) -> None:
    finished = record(tmp_path, 'serve("/", "/orders")', "--children", children)

    assert (finished.status, finished.stderr) == (0, b"replaydbg: no request failed, so the recording was removed\n")
    assert [*(tmp_path / "store").iterdir()] == []


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_server_that_is_stopped_has_not_failed(number: str, tmp_path: Path) -> None:
    text = f"signal.signal(signal.{number}, signal.SIG_DFL)\nserve('/')\nos.kill(os.getpid(), signal.{number})"

    assert record(tmp_path, text).status == -getattr(signal, number)
    assert [*(tmp_path / "store").iterdir()] == []


def test_the_facts_have_that_it_was_removed(tmp_path: Path) -> None:
    assert json.loads(record(tmp_path, 'serve("/")', "--json").stderr)["dropped"] is True
    assert json.loads(record(tmp_path, 'serve("/boom")', "--json").stderr)["dropped"] is False


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('serve("/boom")', 0),
        ('serve("/boom"); kill()', -signal.SIGKILL),
        ('serve("/"); kill()', -signal.SIGKILL),
        ('serve("/"); sys.exit(3)', 3),
        ('serve("/"); signal.signal(signal.SIGTERM, lambda *_: 0); os.abort()', -signal.SIGABRT),
    ],
    ids=["request", "request-and-kill", "kill", "exit-code", "abort"],
)
def test_what_failed_is_kept_and_replays(text: str, status: int, tmp_path: Path) -> None:
    finished = record(tmp_path, text)

    assert finished.status in (status, 128 - status), finished.stderr.decode()
    assert left(tmp_path) == ["run-1.rdbg"]
    assert command(tmp_path, "replay", "run-1").status in (status, 128 - status)


def test_only_workers_with_failed_requests_are_kept(tmp_path: Path) -> None:
    text = 'worker("/"); worker("/", "/boom"); worker("/boom", end=kill); worker("/", end=kill)'

    finished = record(tmp_path, text)

    assert b"1 process not recorded: no request failed, so the recording was removed" in finished.stderr
    assert left(tmp_path) == ["run-1.rdbgs", *(f"run-1.rdbgs/{number}.rdbg" for number in (1, 3, 4, 5))]
    rows = json.loads(command(tmp_path, "requests", "run-1", "--failed", "--json").stdout)["requests"]
    assert [(each["process"], each["number"], each["result"]) for each in rows] == [
        (3, 2, "ValueError"),
        (4, 1, "ValueError"),
    ]
    assert command(tmp_path, "replay", "run-1/3").status == 0
    assert command(tmp_path, "verify", "run-1").status == 0


def test_workers_without_failed_requests_leave_nothing(tmp_path: Path) -> None:
    assert record(tmp_path, 'worker("/"); worker("/orders")').status == 0
    assert [*(tmp_path / "store").iterdir()] == []


def test_a_worker_is_removed_while_the_server_goes_on(tmp_path: Path) -> None:
    text = """
live = sys.argv[1] + "/store/run-1.rdbgs/2.rdbg-live"
pid = os.fork()
if pid == 0:
    print(os.path.exists(live), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
wait_until(lambda: not os.path.exists(live))
print(os.path.exists(live))
serve("/boom")
"""
    (tmp_path / "server.py").write_text(SERVER + text)

    finished = command(tmp_path, "record", "--keep-failing-requests", "server.py", str(tmp_path))

    assert finished.stdout == b"True\nFalse\n"
    assert left(tmp_path) == ["run-1.rdbgs", "run-1.rdbgs/1.rdbg"]


def test_a_worker_stays_while_a_child_of_it_needs_it(tmp_path: Path) -> None:
    text = """
reader, writer = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.read(reader, 1)
        serve("/boom")
    os._exit(0)
os.wait()
time.sleep(0.5)
os.write(writer, b"x")
os.close(writer)
wait_until(lambda: not os.path.exists(sys.argv[1] + "/store/run-1.rdbgs/3.rdbg-live"))
"""
    (tmp_path / "server.py").write_text(SERVER + text)

    command(tmp_path, "record", "--keep-failing-requests", "server.py", str(tmp_path))

    assert left(tmp_path)[-1] == "run-1.rdbgs/3.rdbg"
    assert command(tmp_path, "replay", "run-1/3").status == 0


@pytest.mark.parametrize(("path", "kept"), [("/", []), ("/boom", ["run-1.rdbgs/1.rdbg", "run-1.rdbgs/2.rdbg"])])
def test_a_daemon_decides_when_it_ends(path: str, kept: list[str], tmp_path: Path) -> None:
    """The first process ends before its child has served anything."""
    text = f"""
if os.fork() == 0:
    os.setsid()
    wait_until(lambda: os.path.exists({str(tmp_path / "go")!r}))
    serve({path!r})
    os._exit(0)
"""
    finished = record(tmp_path, text)
    assert b"still running" in finished.stderr and "run-1.rdbgs/1.rdbg" in left(tmp_path)

    (tmp_path / "go").touch()

    wait_until(lambda: left(tmp_path)[1:] == kept and not [*(tmp_path / "store").rglob("page")])


def test_a_killed_recorder_loses_nothing(tmp_path: Path) -> None:
    text = f"""
worker("/boom")
wait_until(lambda: os.path.exists({str(tmp_path / "go")!r}))
serve("/")
"""
    (tmp_path / "server.py").write_text(SERVER + text)
    words = [sys.executable, "-m", "replaydbg", "record", "--keep-failing-requests", "server.py"]
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    with subprocess.Popen(words, cwd=tmp_path, env=env) as recorder:
        wait_until(lambda: (tmp_path / "store/run-1.rdbgs/2.rdbg").exists())
        recorder.kill()

    (tmp_path / "go").touch()

    wait_until(lambda: left(tmp_path) == ["run-1.rdbgs", "run-1.rdbgs/1.rdbg", "run-1.rdbgs/2.rdbg"])


def test_a_recording_that_ends_too_early_is_kept(tmp_path: Path) -> None:
    """Nobody knows whether a request failed after the limit was reached."""
    finished = record(tmp_path, "for _ in range(200000): os.stat('.')\nserve('/boom')", "--max-size", "3M")

    assert b"the recording ends before the program did" in finished.stderr
    assert left(tmp_path) == ["run-1.rdbg"]


def test_an_earlier_recording_of_the_name_stays(tmp_path: Path) -> None:
    record(tmp_path, 'serve("/boom")', "-o", "one.rdbg")
    before = (tmp_path / "one.rdbg").read_bytes()

    record(tmp_path, 'serve("/")', "-o", "one.rdbg")

    assert (tmp_path / "one.rdbg").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.rdbg", "server.py"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep-checkpoints",), "--keep-failing-requests cannot be combined with --chaos-runs or --keep-checkpoints"),
        (("--join", "run-1"), "--join cannot be combined with --keep-failing-requests"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    finished = record(tmp_path, "", *options)

    assert finished.status == 2 and message in finished.stderr.decode()


def test_what_is_noted_while_a_recording_is_removed_keeps_nothing(tmp_path: Path) -> None:
    """The launcher seals the first process while the sealer notes that a request has failed in another one."""
    live = tmp_path / "1.rdbg-live"
    is_over = threading.Event()

    def note() -> None:
        while not is_over.is_set():
            note_failed_request(tmp_path)

    thread = threading.Thread(target=note)
    thread.start()
    try:
        for _ in range(300):
            live.mkdir()
            for name in ("header.json", "log", "marks"):
                (live / name).touch()
            remove_live(live)
            assert not live.exists()
    finally:
        is_over.set()
        thread.join()
