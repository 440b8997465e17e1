"""A replay that waits without using the processor is ended, unless it is stopped or its output is not read."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replaydbg.launch.idle import IdleWatch
from replaydbg.log.reader import open_recording
from replaydbg.replay.time_limits import IDLE_LEAST, IDLE_MOST, idle_limit
from tests.harness import tool
from tests.harness.build import Example, LogBuilder, end_json
from tests.harness.replays import passed_on, run

_LOOKS = 20
_MANY = 500
_SLEEPS = "import signal; print(flush=True); signal.pause()"
_COMPUTES = "print(flush=True)\nwhile True: pass"


@contextmanager
def _running(program: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _watch(process: subprocess.Popen[bytes], *outputs: int) -> Iterator[IdleWatch]:
    watch = IdleWatch(process.pid, seconds=_LOOKS, outputs=outputs)
    try:
        yield watch
    finally:
        watch.close()


def _looks(watch: IdleWatch) -> int:
    """Look until the process is ended, and return how often; at most `_MANY` times."""
    for number in range(_MANY):
        watch.look()
        if watch.has_ended_it:
            return number + 1
    return _MANY


def test_a_process_that_waits_is_ended() -> None:
    with _running(_SLEEPS) as process, _watch(process) as watch:
        looks = _looks(watch)

        assert process.wait() == -signal.SIGKILL
    assert _LOOKS < looks < _MANY


def test_a_process_that_works_is_not_ended() -> None:
    with _running(_COMPUTES) as process, _watch(process) as watch:
        assert _looks(watch) == _MANY
        assert process.poll() is None


def test_a_process_that_is_stopped_is_not_ended() -> None:
    with _running(_SLEEPS) as process, _watch(process) as watch:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)

        assert _looks(watch) == _MANY
        process.send_signal(signal.SIGCONT)
        assert _looks(watch) < _MANY


def test_a_process_whose_output_is_not_read_is_not_ended() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    size = os.write(writer, bytes(1 << 20))
    with _running(_SLEEPS) as process, _watch(process, writer, writer) as watch:
        assert _looks(watch) == _MANY
        os.read(reader, size)
        assert _looks(watch) < _MANY
    os.close(reader)
    os.close(writer)


def test_a_process_that_has_ended_is_left_alone() -> None:
    with _running("print(flush=True)") as process, _watch(process) as watch:
        process.wait()

        assert _looks(watch) == _MANY


@pytest.mark.parametrize(("seconds", "limit"), [(0.0, IDLE_LEAST), (100.0, 100.0 + IDLE_LEAST), (1e300, IDLE_MOST)])
def test_the_limit_follows_the_recorded_time(seconds: float, limit: float, tmp_path: Path) -> None:
    example = Example(end=end_json(seconds=seconds), log=LogBuilder().to_bytes())

    with open_recording(example.write(tmp_path)) as recording:
        assert idle_limit(recording) == limit


# Behind a fence a process can gain no privileges, and can query that: C code can detect that it is replayed.
_WAITS = """import ctypes, time
libc = ctypes.CDLL(None)
print("begun", flush=True)
word = ctypes.c_int(0)
if libc.prctl(39, 0, 0, 0, 0) == 1:
    libc.syscall(202, ctypes.byref(word), 128, 0, None, None, 0)
print(time.time() > 0)
"""
_SCRIPT = """import replaydbg.launch.idle as idle, replaydbg.replay.time_limits as limits
idle.INTERVAL, limits.IDLE_LEAST, limits.IDLE_MOST = 0.05, 1.0, 1.0
from replaydbg.cli.main import main
raise SystemExit(main(["replay", "r.rdbg"]))
"""
_PRINTS = "for _ in range(300):\n    print('x' * 1000)\n"


@pytest.mark.slow
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a system call by its number there")
def test_a_replay_that_waits_for_ever_is_ended_with_a_sentence(tmp_path: Path) -> None:
    _record(tmp_path, _WAITS)

    replayed = run([sys.executable, "-c", _SCRIPT], cwd=tmp_path, env=_env())

    assert (replayed.status, replayed.stdout) == (tool.DIVERGED, "begun\n"), replayed.stderr
    assert "without using the processor" in replayed.stderr
    assert "divergence-endless" in replayed.stderr


@pytest.mark.slow
def test_a_replay_whose_reader_is_slow_goes_on(tmp_path: Path) -> None:
    _record(tmp_path, _PRINTS)

    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], cwd=tmp_path, env=_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=5)  # five times the limit
        out, err = process.communicate()

    assert process.returncode == 0, err
    assert len(out) == 300 * 1001


def _record(directory: Path, program: str) -> None:
    (directory / "program.py").write_text(program)
    recorded = run(tool.record(sys.executable, directory / "r.rdbg", ["program.py"]), cwd=directory, env=_env())
    assert recorded.status == 0, recorded.stderr


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
