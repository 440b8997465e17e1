"""`replaydbg resume --follow` replays behind a program that runs, and takes over when that is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.resumes.rounds import PROGRAMS, missing, standby_round

pytestmark = pytest.mark.slow

_TIMEOUT = 20.0
# It waits for the file `go` at its middle: the test kills it there, or lets it end.
_WAITS = """import os, sys, time
with open("{folder}/pid", "w") as file:
    print(os.getpid(), file=file)
{begins}
with open("out", "a") as file:
    file.write("one\\n")
    file.flush()
    print("printed", flush=True)
    while not os.path.exists("{folder}/go"):
        time.sleep(0.005)
    file.write("two\\n")
{ends}
print("done")
sys.exit(3)
"""
_FOLLOW = ("--follow", "--in-flight=repeat", "-o", "two.rdbg")


@contextmanager
def recorded(
    folder: Path, *, begins: str = "", ends: str = "", options: tuple[str, ...] = ("--children=none",)
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Record the program in the block, from its middle on; yield the recorder and the program's process id."""
    (folder / "program.py").write_text(_WAITS.format(begins=begins, ends=ends, folder=folder))
    command = [sys.executable, "-m", "replaydbg", "record", "-q", *options, "-o", "one.rdbg", "program.py"]
    with subprocess.Popen(
        command, cwd=folder, env=_env(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == b"printed\n"
        try:
            yield recorder, int((folder / "pid").read_text())
        finally:
            recorder.kill()
            (folder / "go").touch()


@contextmanager
def standing_by(folder: Path, *words: str, waits: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """Run a standby in the block, once it has begun to follow if it `waits` for that; what it prints is in the files
    `printed` and `said`.
    """
    command = [sys.executable, "-m", "replaydbg", "resume", *(words or ("one.rdbg", *_FOLLOW))]
    with (
        (folder / "printed").open("wb") as printed,
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            command, cwd=folder, env=_env(folder), stdin=subprocess.DEVNULL, stdout=printed, stderr=said
        ) as standby,
    ):
        if waits:
            wait_until(lambda: b"hot standby for" in (folder / "said").read_bytes() or standby.poll() is not None)
        try:
            yield standby
        finally:
            standby.kill()


def _env(folder: Path) -> dict[str, str]:
    return dict(without_steering(os.environ)) | {"REPLAYDBG_STORE": str(folder / "store")}


def replaydbg(folder: Path, *words: str) -> Finished:
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=_env(folder), timeout=_TIMEOUT)


def take_over(folder: Path, standby: subprocess.Popen[bytes], program: int) -> int:
    """Kill the program, let the standby's go on to its end, and return its exit code."""
    os.kill(program, signal.SIGKILL)
    wait_until(lambda: b"live after event" in (folder / "said").read_bytes() or standby.poll() is not None)
    (folder / "go").touch()
    return standby.wait(_TIMEOUT)


def check_recording(folder: Path, printed: bytes = b"printed\ndone\n") -> None:
    replayed = replaydbg(folder, "replay", "two.rdbg")
    assert (replayed.status, replayed.stdout) == (3, printed), replayed.stderr
    assert replaydbg(folder, "verify", "two.rdbg").status == 0


def test_it_takes_over_when_the_program_is_killed(tmp_path: Path) -> None:
    with recorded(tmp_path) as (_, program), standing_by(tmp_path) as standby:
        assert take_over(tmp_path, standby, program) == 3

    assert (tmp_path / "out").read_text() == "one\ntwo\n"
    assert (tmp_path / "printed").read_bytes() == b"done\n"
    sentence = f"hot standby for one.rdbg: if process {program} is killed, the program continues here"
    assert sentence in (tmp_path / "said").read_text()
    check_recording(tmp_path)
    with open_recording(tmp_path / "two.rdbg") as recording:
        (entry,) = recording.header.raw["resumed"]
        assert entry["from"] == "one"
        assert 0 < entry["event"] < sum(1 for _ in recording.events(controls=False))


def test_a_refusal_has_the_name_that_was_typed(tmp_path: Path) -> None:
    with recorded(tmp_path) as (_, program), standing_by(tmp_path) as standby:
        (tmp_path / "out").write_text("")
        os.kill(program, signal.SIGKILL)
        assert standby.wait(_TIMEOUT) == 2

    assert "Cannot resume 'one.rdbg': files differ" in (tmp_path / "said").read_text()


def test_a_killed_recorder_is_not_needed(tmp_path: Path) -> None:
    with recorded(tmp_path) as (recorder, program), standing_by(tmp_path) as standby:
        recorder.kill()
        recorder.wait()
        assert take_over(tmp_path, standby, program) == 3

    check_recording(tmp_path)


def test_a_standby_of_a_standby(tmp_path: Path) -> None:
    with recorded(tmp_path) as (_, program), standing_by(tmp_path) as standby:
        os.kill(program, signal.SIGKILL)
        wait_until(lambda: b"live after event" in (tmp_path / "said").read_bytes())
        (second,) = Path(f"/proc/{standby.pid}/task/{standby.pid}/children").read_text().split()
        with standing_by(tmp_path, "two.rdbg", *_FOLLOW[:-1], "three.rdbg") as third:
            assert take_over(tmp_path, third, int(second)) == 3

    assert (tmp_path / "out").read_text() == "one\ntwo\n"
    assert (tmp_path / "printed").read_bytes() == b"done\n"
    with open_recording(tmp_path / "three.rdbg") as recording:
        assert [each["from"] for each in recording.header.raw["resumed"]] == ["one", "two"]


def test_a_standby_behind_a_standby(tmp_path: Path) -> None:
    behind = tmp_path / "behind"
    behind.mkdir()
    with recorded(tmp_path) as (_, program), standing_by(tmp_path) as standby:
        wait_until(lambda: (tmp_path / "two.rdbg-live" / "header.json").exists())
        with standing_by(behind, str(tmp_path / "two.rdbg"), *_FOLLOW[:-1], "three.rdbg", waits=False) as third:
            time.sleep(1.0)  # by then it looks for the log, which the takeover makes
            os.kill(program, signal.SIGKILL)
            wait_until(lambda: b"hot standby for" in (behind / "said").read_bytes() or third.poll() is not None)
            wait_until(lambda: b"live after event" in (tmp_path / "said").read_bytes())
            (second,) = Path(f"/proc/{standby.pid}/task/{standby.pid}/children").read_text().split()
            os.kill(int(second), signal.SIGKILL)
            (tmp_path / "go").touch()
            assert third.wait(_TIMEOUT) == 3

    assert (tmp_path / "out").read_text() == "one\ntwo\n"
    assert re.search(rb"clock +monotonic clocks: paused for \d+ s\n", (behind / "said").read_bytes())


@pytest.mark.parametrize(
    ("ends", "status"), [("", 3), ("os._exit(4)", 4), ("raise ValueError", 1)], ids=["exit", "_exit", "exception"]
)
def test_it_is_not_needed_if_the_program_ends(ends: str, status: int, tmp_path: Path) -> None:
    with recorded(tmp_path, ends=ends) as (recorder, _), standing_by(tmp_path) as standby:
        (tmp_path / "go").touch()
        assert recorder.wait(_TIMEOUT) == status
        assert standby.wait(_TIMEOUT) == 0

    said = (tmp_path / "said").read_text().splitlines()
    assert said[1:] == [f"replaydbg: the program of one.rdbg ended with exit code {status}; the standby was not needed"]
    assert not list(tmp_path.glob("two*"))
    assert (tmp_path / "out").read_text() == "one\ntwo\n"


def test_it_is_not_needed_if_an_interrupt_ends_the_program(tmp_path: Path) -> None:
    """Python handles SIGINT by an exception, and so ends the program by itself."""
    with recorded(tmp_path) as (recorder, program), standing_by(tmp_path) as standby:
        os.kill(program, signal.SIGINT)
        assert recorder.wait(_TIMEOUT) == -signal.SIGINT
        assert standby.wait(_TIMEOUT) == 0

    said = (tmp_path / "said").read_text().splitlines()
    sentence = "the program of one.rdbg had ended when it was killed by SIGINT; the standby was not needed"
    assert said[1:] == [f"replaydbg: {sentence}"]
    assert not list(tmp_path.glob("two*"))


def test_it_is_not_needed_as_json(tmp_path: Path) -> None:
    with recorded(tmp_path):
        command = [sys.executable, "-m", "replaydbg", "resume", "one.rdbg", "--json", *_FOLLOW]
        with subprocess.Popen(
            command, cwd=tmp_path, env=_env(tmp_path), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as standby:
            wait_until((tmp_path / "two.rdbg-live" / "header.json").exists)
            (tmp_path / "go").touch()
            _, said = standby.communicate(timeout=_TIMEOUT)

    facts = json.loads(said)
    assert facts == facts | {"recording": "one.rdbg", "took_over": False, "status": 3}


def test_its_directory_and_mask_are_those_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    begins = "os.chdir('below'); os.umask(0o077)"
    ends = "open('made', 'w').close(); print(os.getcwd(), oct(os.stat('made').st_mode))"
    with recorded(tmp_path, begins=begins, ends=ends) as (_, program), standing_by(tmp_path) as standby:
        assert take_over(tmp_path, standby, program) == 3

    printed = f"{tmp_path}/below 0o100600\ndone\n".encode()
    assert (tmp_path / "printed").read_bytes() == printed
    check_recording(tmp_path, b"printed\n" + printed)


def test_large_files_that_were_read_are_followed(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(range(256)) * 20_000)
    begins = "data = open('large', 'rb').read(); other = open('large', 'rb', buffering=0); first = other.read(1000)"
    ends = "print(len(data), len(other.read()), data[:1000] == first)"
    with recorded(tmp_path, begins=begins, ends=ends) as (_, program), standing_by(tmp_path) as standby:
        assert take_over(tmp_path, standby, program) == 3

    assert (tmp_path / "printed").read_bytes() == b"5120000 5119000 True\ndone\n"
    check_recording(tmp_path, b"printed\n5120000 5119000 True\ndone\n")


def test_a_recording_with_children_has_a_standby_until_there_are_any(tmp_path: Path) -> None:
    words = ("one.rdbgs/1.rdbg-live", *_FOLLOW)
    with recorded(tmp_path, options=()) as (_, program), standing_by(tmp_path, *words) as standby:
        assert take_over(tmp_path, standby, program) == 3

    check_recording(tmp_path)


def test_it_ends_when_a_child_is_recorded_as_well(tmp_path: Path) -> None:
    words = ("one.rdbgs/1.rdbg-live", *_FOLLOW)
    ends = "import os\nif os.fork() == 0: os._exit(0)\nos.wait()\ntime.sleep(30)"
    with recorded(tmp_path, options=(), ends=ends) as (_, program), standing_by(tmp_path, *words) as standby:
        (tmp_path / "go").touch()
        assert standby.wait(_TIMEOUT) == 2
        os.kill(program, signal.SIGKILL)

    assert b"it is one of several processes that were recorded together" in (tmp_path / "said").read_bytes()


def test_what_cannot_be_followed_is_refused(tmp_path: Path) -> None:
    with recorded(tmp_path) as (recorder, program), standing_by(tmp_path):
        second = replaydbg(tmp_path, "resume", "one.rdbg", *_FOLLOW[:-1], "three.rdbg")
        os.kill(program, signal.SIGKILL)
        recorder.wait(_TIMEOUT)
    sealed = replaydbg(tmp_path, "resume", "one.rdbg", *_FOLLOW[:-1], "three.rdbg")

    assert second.status == 2 and b"another `replaydbg resume` of it is running" in second.stderr
    assert sealed.status == 2 and b"it is no longer being written: leave out --follow" in sealed.stderr
    assert not list(tmp_path.glob("three*"))


def test_a_file_that_differs_stops_the_takeover(tmp_path: Path) -> None:
    with recorded(tmp_path) as (_, program), standing_by(tmp_path) as standby:
        (tmp_path / "out").write_text("changed by another program\n")
        os.kill(program, signal.SIGKILL)
        assert standby.wait(_TIMEOUT) == 2

    assert "out has other content" in (tmp_path / "said").read_text()
    assert "Traceback" not in (tmp_path / "said").read_text()
    assert not list(tmp_path.glob("two*"))


def test_a_signal_ends_the_standby_alone(tmp_path: Path) -> None:
    with recorded(tmp_path) as (recorder, _), standing_by(tmp_path) as standby:
        standby.send_signal(signal.SIGTERM)
        assert standby.wait(_TIMEOUT) in (-signal.SIGTERM, 128 + signal.SIGTERM)
        (tmp_path / "go").touch()
        assert recorder.wait(_TIMEOUT) == 3

    assert not list(tmp_path.glob("two*"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--plan",), b"--plan cannot be used with --follow"),
        (("--at", "5"), b"--at cannot be used with --follow"),
        ((), b"--follow needs --in-flight=repeat or --in-flight=skip without a terminal"),
    ],
)
def test_options_that_a_standby_cannot_have(words: tuple[str, ...], sentence: bytes, tmp_path: Path) -> None:
    finished = replaydbg(tmp_path, "resume", "one.rdbg", "--follow", *words)

    assert finished.status == 2
    assert sentence in finished.stderr


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_lost_or_doubled(program: str, seed: int, tmp_path: Path) -> None:
    if reason := missing(program):
        pytest.skip(reason)
    assert standby_round(seed, program, tmp_path).kills == 1
