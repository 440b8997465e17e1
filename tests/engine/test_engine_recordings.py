"""Sessions of recordings with odd ends, or of unusual programs: they open at the best available moment."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import AskFailed
from tests.harness import tool
from tests.harness.process import run
from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRAVEL = FIXTURES / "travel"
SPACING = 0.004


def record(folder: Path, *argv: str, status: int = 0) -> Path:
    recording = folder / "run.rdbg"
    told = run(
        tool.record(sys.executable, recording, list(argv)), cwd=folder, env=without_steering(os.environ), timeout=60
    )
    assert told.status == status, told.stderr
    return recording


def visit(session: Session) -> None:
    """Visit every tenth of the run, in any order, and inspect it."""
    counts = [1 + session.index.total * part // 10 for part in range(10)]
    for count in (*counts[::2], *counts[::-3], session.index.total):
        assert session.seek(count).count == count
        try:
            session.ask.variables()
            [session.ask.stack(each.id) for each in session.here.lanes]
            session.ask.tasks()
        except AskFailed:
            # During its exit the interpreter deletes its own modules, and may be unable to answer.
            assert count > session.index.end


def line(session: Session) -> int:
    assert session.here.top is not None
    return session.here.top.line


@pytest.mark.parametrize(
    ("source", "status", "at", "said"),
    [
        ("", 0, 0, "the program ended"),
        ("import os\nx = 1\nos._exit(3)\n", 3, 3, "the program ended with status 3"),
        ("import os\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    os._exit(1)\n", 1, 5, "with status 1"),
        ("import os\nx = 1\nos.kill(os.getpid(), 9)\n", -9, 3, "signal 9 ended the program"),
        ("import os\nx = 1\nos.kill(os.getpid(), 11)\n", -11, 3, "signal 11 ended the program"),
        ("import sys\ndef f():\n    sys.exit('text')\nf()\n", 1, 3, "SystemExit: text"),
        ("def f(n):\n    return f(n + 1)\nf(0)\n", 1, 2, "RecursionError"),
        ("import threading\nt = threading.Thread(target=exit)\nt.start()\nt.join()\n", 0, 4, "the program ended"),
    ],
)
def test_it_opens_where_the_program_ended(tmp_path: Path, source: str, status: int, at: int, said: str) -> None:
    (tmp_path / "program.py").write_text(source)
    recording = tmp_path / "run.rdbg"
    command = tool.record(sys.executable, recording, ["program.py"])
    told = run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=60)
    assert told.status in (status, 128 - status), told.stderr
    with Session(recording, spacing=SPACING) as session:
        assert said in session.here.message
        assert line(session) == at
        visit(session)


def test_a_program_that_cannot_be_compiled(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("x = = 1\n")
    with Session(record(tmp_path, "program.py", status=1), spacing=SPACING) as session:
        assert "SyntaxError: invalid syntax" in session.here.message
        visit(session)


def test_a_crash_of_c_code(tmp_path: Path) -> None:
    recording = tmp_path / "crashes.rdbg"
    command = tool.record(sys.executable, recording, [str(TRAVEL / "crashes.py")])
    run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=60)
    with Session(recording, spacing=SPACING) as session:
        assert "the program crashed: SIGSEGV" in session.here.message
        assert line(session) == 6
        visit(session)


def test_it_became_another_program(tmp_path: Path) -> None:
    with Session(record_file(TRAVEL / "another_program.py", tmp_path), spacing=SPACING) as session:
        assert "the recording ends here: the program replaced its process image" in session.here.message
        assert line(session) == 7


def test_a_deadlock_that_was_interrupted(tmp_path: Path) -> None:
    recording = tmp_path / "run.rdbg"
    command = tool.record(sys.executable, recording, [str(TRAVEL / "waits_for_ever.py")])
    process = subprocess.Popen(
        command, cwd=tmp_path, env=without_steering(os.environ), stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stderr is not None
    with process.stderr:
        while b"deadlock" not in process.stderr.readline():
            pass
        os.killpg(process.pid, signal.SIGINT)
        process.stderr.read()
        process.wait(30)
    with Session(recording, spacing=SPACING) as session:
        assert session.here.message.startswith("KeyboardInterrupt")
        visit(session)


def test_a_killed_recording_opens_at_its_last_moment(tmp_path: Path) -> None:
    # It goes on until it is killed; the sleeps keep the recording short.
    (tmp_path / "program.py").write_text(
        "import time\nn = 0\nprint('ready', flush=True)\nwhile True:\n    n += 1\n    time.sleep(0.001)\n"
    )
    recording = tmp_path / "run.rdbg"
    command = tool.record(sys.executable, recording, ["program.py"])
    process = subprocess.Popen(
        command, cwd=tmp_path, env=without_steering(os.environ), stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        process.stdout.fileno()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    live = next(tmp_path.glob("*-live"))
    with Session(live, spacing=SPACING) as session:
        assert "the recording ends here" in session.here.message
        assert line(session) in (3, 4, 5, 6)
        visit(session)
    shutil.rmtree(live)


def test_a_changed_source_diverges_and_the_session_opens_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time, os\na = time.time()\nb = os.getcwd()\nprint('end')\n")
    recording = record(tmp_path, "program.py")
    program.write_text("import time, os\na = time.time()\nb = time.monotonic()\nprint('end')\n")
    with Session(recording, current_source=True, spacing=SPACING) as session:
        assert "the replay diverged from the recording here" in session.here.message
        assert "time.monotonic()" in session.here.message
        assert line(session) == 3
        visit(session)
    with Session(recording, spacing=SPACING) as session:
        assert session.here.message == "the program ended"


def test_a_module_a_command_and_a_test_run(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text("def f(x):\n    return x / 0\nf(1)\n")
    with Session(record(tmp_path, "-m", "failing", status=1), spacing=SPACING) as session:
        assert session.here.message == "ZeroDivisionError: division by zero"
        assert line(session) == 2
    (tmp_path / "run.rdbg").unlink()
    with Session(record(tmp_path, "-c", "def f(x):\n    return x / 0\nf(1)", status=1), spacing=SPACING) as session:
        assert line(session) == 2
        visit(session)
    (tmp_path / "run.rdbg").unlink()
    (tmp_path / "test_it.py").write_text("def test_it():\n    one = 1\n    assert one == 2\n")
    recording = record(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", status=1)
    with Session(recording) as session:
        assert session.here.message.startswith(("AssertionError", "SystemExit"))
        visit(session)


@pytest.mark.parametrize(
    "program",
    [
        "travel/tasks_wait.py",
        "travel/shares_a_map.py",
        "travel/waits_for_a_lock.py",
        "lanes/async_subprocesses.py",
        "lanes/executor_map.py",
        "lanes/generators.py",
        "lanes/queue_bounded.py",
        "sqlite/transactions.py",
    ],
)
def test_unusual_programs_can_be_travelled_through(tmp_path: Path, program: str) -> None:
    recording = record_file(FIXTURES / program, tmp_path, status=1 if "tasks_wait" in program else 0)
    with Session(recording, spacing=SPACING) as session:
        assert session.is_repeated
        digests = {}
        for count in range(1, session.index.total, session.index.total // 40 + 1):
            session.seek(count)
            digests[count] = session.cursor.look().digest
        for count in list(digests)[::-3]:
            session.seek(count)
            assert session.cursor.look().digest == digests[count]
        # From each checkpoint the program reaches the same end.
        ends = set()
        for each in session.checkpoints():
            worker = session.travel.at(session.index.count(each))
            ends.add(session.travel.arrived(worker, session.index.total).look().digest)
            worker.kill()
        assert len(ends) == 1
        visit(session)


def test_clones_do_not_share_a_map(tmp_path: Path) -> None:
    with Session(record_file(TRAVEL / "shares_a_map.py", tmp_path), spacing=0.001) as session:
        for turn in (150, 20, 199, 0):
            found = [
                each
                for each in session.run.log("shares_a_map.py", 9, "shared[0], turn")
                if each.text == f"({turn}, {turn})"
            ]
            assert len(found) == 1
            session.seek(found[0].count)
            value = session.ask.evaluate("shared[0]").value
            assert value is not None and value.text == str(turn)


def test_a_clone_has_the_memory_of_the_moment_at_which_it_was_made(tmp_path: Path) -> None:
    with Session(record_file(TRAVEL / "writes_a_large_map.py", tmp_path), spacing=0.001) as session:
        behind = []
        for each in session.checkpoints():
            session.seek(session.index.count(each))
            value = session.ask.evaluate("turn - int.from_bytes(shared[-4:], 'little')").value
            behind += [value.text] if value is not None else []  # before the loop there is no `turn`
        assert len(behind) > 3
        assert set(behind) <= {"0", "1"}
