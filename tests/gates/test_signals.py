"""Signals are handled in a replay at their original place: inside crossings, between them, in pure computation.

The first test uses the fixtures, which send the signals to themselves or let children send them; the others press
Ctrl-C.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.events.show import show_outcome
from replaydbg.launch.process import run_process
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES, Case, cases
from tests.harness.replays import TIMEOUT, Outcome, Scene, passed_on, run
from tests.harness.waiting import cpu_ticks, process_fields, wait_until

pytestmark = pytest.mark.slow

# The sleeps are what the signal interrupts.
_SLEEPS = """import os, time
print("ready", os.getpid(), flush=True)
try:
    time.sleep(50)
finally:
    print("finally", flush=True)
"""
_CATCHES = """import os, sys, time
caught = 0
print("ready", os.getpid(), flush=True)
try:
    sys.stdin.readline()
except KeyboardInterrupt:
    caught = time.time()
print("caught at", caught, flush=True)
sys.exit(3)
"""
_COMPUTES = """import os
print("ready", os.getpid(), flush=True)
rounds = 0
try:
    while True:
        rounds += 1
except KeyboardInterrupt:
    print("interrupted after", rounds)
"""
_ENDS_BY_HANDLER = """import os, signal, sys, time
def handler(number, frame):
    print("asked to end", number, time.time(), flush=True)
    sys.exit(9)
signal.signal(signal.SIGTERM, handler)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(50)
"""


@pytest.mark.parametrize("case", cases("signals"))
def test_signal_replays(case: Case) -> None:
    case.check()


@pytest.mark.parametrize(
    ("source", "status"),
    [(_SLEEPS, 130), (_CATCHES, 3), (_COMPUTES, 0)],
    ids=["inside_sleep", "caught_inside_readline", "while_computing"],
)
def test_ctrl_c_at_the_terminal_replays(source: str, status: int, tmp_path: Path) -> None:
    """The terminal sends SIGINT to the launcher too, which must outlive the program and seal the recording."""
    recording = tmp_path / "r.rdbg"

    recorded = _record_and_signal(source, recording, signal.SIGINT)
    replayed = _replay(recording)

    assert recorded.status == status
    assert recording.is_file()
    assert recorded.stdout == replayed.stdout
    assert recorded.stderr == replayed.stderr
    assert recorded.status == replayed.status


def test_termination_of_the_whole_group_is_handled_by_the_program(tmp_path: Path) -> None:
    """A supervisor ends a process group by SIGTERM: the program's handler runs, and the recording opens."""
    recording = tmp_path / "r.rdbg"

    recorded = _record_and_signal(_ENDS_BY_HANDLER, recording, signal.SIGTERM)
    replayed = _replay(recording)

    assert "asked to end 15" in recorded.stdout
    assert recorded.stdout == replayed.stdout
    assert (recorded.status, replayed.status) == (9, 9)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_ends_the_whole_group_leaves_a_sealed_recording(number: signal.Signals, tmp_path: Path) -> None:
    """The program may be gone when the launcher is to pass the signal on."""
    recording = tmp_path / "r.rdbg"

    recorded = _record_and_signal(_SLEEPS, recording, number)

    assert recorded.status == 128 + number
    assert recording.is_file()


def test_an_interrupt_for_the_launcher_alone_reaches_the_program(tmp_path: Path) -> None:
    """A supervisor without a terminal interrupts the process that it started, and knows of no program below it."""
    recording = tmp_path / "r.rdbg"

    recorded = _record_and_signal(_CATCHES, recording, signal.SIGINT, send=os.kill)

    assert recorded.stdout.count("caught at") == 1
    assert recorded.status == 3


def test_a_group_that_is_stopped_and_continued_goes_on(tmp_path: Path) -> None:
    """The launcher may be continued before the program, and must not take it for one stopped by Ctrl-Z."""
    recording = tmp_path / "r.rdbg"

    def stop_and_interrupt(group: int, number: int) -> None:
        for each in (signal.SIGSTOP, signal.SIGCONT, number):
            os.killpg(group, each)

    recorded = _record_and_signal(_CATCHES, recording, signal.SIGINT, send=stop_and_interrupt)

    assert recorded.status == 3


def test_a_program_that_is_killed_while_it_is_stopped_leaves_a_sealed_recording(tmp_path: Path) -> None:
    """No shell would continue a launcher that stopped like its program."""
    recording = tmp_path / "r.rdbg"

    def stop_and_kill(launcher: int, number: int) -> None:
        program = int(Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()[0])
        os.kill(program, signal.SIGSTOP)
        wait_until(lambda: _state(program) == "T")
        with suppress(AssertionError):
            wait_until(lambda: _state(launcher) == "T", 0.5)
        os.kill(program, number)

    recorded = _record_and_signal(_SLEEPS, recording, signal.SIGKILL, send=stop_and_kill)

    assert recorded.status == 128 + signal.SIGKILL
    assert recording.is_file()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_signal_that_the_program_handles_late_is_not_passed_on_to_it() -> None:
    """On a busy machine it may do so just before the launcher's time limit."""
    looks = iter([0] * 10)
    reading, writing = os.pipe()

    def signal_us_and_end_it(pid: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.close(writing)

    with os.fdopen(reading) as stdin:
        # Without a handler the signal would end it.
        ended = run_process(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            _env(),
            fds=(stdin.fileno(), None, None),
            meanwhile=signal_us_and_end_it,
            handled=lambda: next(looks, 1),
        )

    assert ended.status == 0


def _record_and_signal(
    source: str, recording: Path, number: int, *, send: Callable[[int, int], None] = os.killpg
) -> Outcome:
    """Record `source`, and send the signal to the launcher's whole group when the program is waiting."""
    program = recording.with_name("program.py")
    program.write_text(source)
    command = tool.record(sys.executable, recording, [str(program)])
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_env(),
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if first.startswith(b"ready "):
            _wait_until_busy(int(first.split()[1]))
            send(process.pid, number)
        out, err = process.communicate(timeout=TIMEOUT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Outcome((first + out).decode(), err.decode(), status, 0.0)


def _wait_until_busy(pid: int) -> None:
    """Return when the program has left the print of "ready": it sleeps in the kernel, or it computes.

    If a signal arrives inside that very print, the interpreter itself may fail.
    """
    first = cpu_ticks(pid)
    # A print takes a small part of a tick.
    wait_until(
        lambda: process_fields(pid)[0] == "S" or cpu_ticks(pid) >= first + 3,
        TIMEOUT,
        message=lambda: "the program neither sleeps nor computes",
    )


def _replay(recording: Path) -> Outcome:
    for path in recording.parent.glob("*.py"):
        path.unlink()
    return run(tool.replay(sys.executable, recording), cwd=recording.parent, env=_env())


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath)}


def test_what_a_handler_raised_inside_a_crossing_can_be_read() -> None:
    scene = Scene.make(FIXTURES / "signals" / "alarm_inside_sleep.py")
    try:
        scene.record()
        with open_recording(scene.recording) as recording:
            events = [entry for entry in recording.events() if isinstance(entry, Event)]
    finally:
        scene.remove()

    raised = [show_outcome(event) for event in events if event.gate == "time.sleep" and event.raised]
    assert raised == ["raised what the program's own code raised inside"]


_COUNTS_UNSEEN = """import signal, sqlite3, zlib
def handler(number, frame):
    raise TimeoutError
def rows():
    database = sqlite3.connect(":memory:")
    database.execute("create table t (n integer)")
    database.execute("insert into t values (0)")
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        while True:
            database.execute("update t set n = n + 1")
    except TimeoutError:
        return database.execute("select n from t").fetchone()[0]
def compressed():
    packer = zlib.compressobj()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        while True:
            packer.compress(b"xyz")
    except TimeoutError:
        return len(packer.flush())
signal.signal(signal.SIGALRM, handler)
"""


@pytest.mark.parametrize(("loop", "function"), [("rows", "rows"), ("compressed", "compressed")])
def test_a_loop_whose_state_cannot_be_seen_leaves_a_doubt(loop: str, function: str, tmp_path: Path) -> None:
    recording = _recorded(f"{_COUNTS_UNSEEN}n = {loop}()\n", tmp_path)

    as_text = run([sys.executable, "-m", "replaydbg", "replay", str(recording)], cwd=tmp_path, env=_env())
    facts = json.loads(run([*tool.replay(sys.executable, recording), "--json"], cwd=tmp_path, env=_env()).stdout)

    assert facts["unsure"] > 0
    assert f"signal 14 (SIGALRM) in {function} (" in facts["unsure_place"]
    assert facts["unsure_place"] in as_text.stderr
    assert "may have run in another iteration of a loop" in as_text.stderr


def test_questions_about_such_a_run_come_with_the_doubt(tmp_path: Path) -> None:
    recording = _recorded(f"{_COUNTS_UNSEEN}n = rows()\n", tmp_path)

    why = run([sys.executable, "-m", "replaydbg", "why", str(recording), "n"], cwd=tmp_path, env=_env())
    debug = run([sys.executable, "-m", "replaydbg", "debug", str(recording)], cwd=tmp_path, env=_env(), stdin=b"quit\n")

    assert "the handler of signal 14 (SIGALRM) in rows (" in why.stderr
    assert (debug.stdout + debug.stderr).count("the handler of signal 14 (SIGALRM) in rows (") == 1


@pytest.mark.parametrize("loop", ["rows", "compressed"])
def test_a_doubt_is_the_cause_of_a_divergence_that_follows(loop: str, tmp_path: Path) -> None:
    recording = _recorded(f"{_COUNTS_UNSEEN}print({loop}())\n", tmp_path)

    replayed = run([*tool.replay(sys.executable, recording), "--json"], cwd=tmp_path, env=_env())

    assert replayed.status == tool.DIVERGED
    facts = json.loads(replayed.stdout)
    assert facts["divergence"]["kind"] == "bytes"
    assert "the handler of signal 14 (SIGALRM)" in facts["divergence"]["cause"]
    assert "address" not in facts["divergence"]["cause"]
    assert facts["unsure"] == facts["divergence"]["event"]


def _recorded(source: str, directory: Path) -> Path:
    program, recording = directory / "program.py", directory / "r.rdbg"
    program.write_text(source)
    recorded = run(tool.record(sys.executable, recording, [str(program)]), cwd=directory, env=_env())
    assert recorded.status == 0
    return recording
