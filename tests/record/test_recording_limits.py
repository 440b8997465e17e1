"""When nothing more can be written, the recorded program goes on unharmed, and the recording explains its end."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.record import record
from tests.harness import tool
from tests.harness.figures import read_figures
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

_STATUS = 5
# Entropy does not compress: some 20 MB of log.
_PROGRAM = """import hashlib, os, sys
total = 0
for number in range(2000):
    data = os.urandom(10_000)
    total += len(data)
    if number % 100 == 0:
        print(number, hashlib.sha256(data).hexdigest(), flush=True)
with open("made.txt", "w") as file:
    file.write("made by the program")
print("done", total, flush=True)
sys.exit(5)
"""
_LAST_LINE = "done 20000000\n"


def test_a_size_limit_ends_the_recording_and_not_the_program(tmp_path: Path) -> None:
    recording = tmp_path / "r.rdbg"
    command = _record(recording, "--max-size", "3M")

    recorded = run(command, cwd=_work(tmp_path), env=_env())

    _assert_unharmed(recorded, tmp_path)
    assert recording.stat().st_size < 4_000_000
    assert "size" in (read_figures(recording).reason or "")
    _assert_replays_beginning(recording, recorded)


@pytest.mark.parametrize("more", [(), ("--children", "python")])
def test_the_longest_name_is_the_longest_that_can_be_sealed(more: tuple[str, ...], tmp_path: Path) -> None:
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") - len("..rdbg.4194304.partial")
    command = [sys.executable, "-m", "replaydbg", "record", *more, "-o"]

    fits = run([*command, "x" * longest, "-c", "print(1)"], cwd=tmp_path, env=_env())
    too_long = run([*command, "y" * (longest + 1) + ".rdbg", "-c", "print(1)"], cwd=tmp_path, env=_env())

    assert (fits.status, fits.stdout) == (0, "1\n")
    assert [each.name for each in tmp_path.iterdir()] == ["x" * longest + ".rdbg"]
    assert (too_long.status, too_long.stdout) == (2, "")
    assert f"its name has {longest + 1} bytes, and at most {longest} are possible there." in too_long.stderr
    assert too_long.stderr.count("\n") == 1


@pytest.mark.parametrize("limit", ["1", "60", "500", "1k"])
def test_a_limit_that_not_even_the_start_fits_in(limit: str, tmp_path: Path) -> None:
    recorded = run(_record(tmp_path / "r.rdbg", "--max-size", limit), cwd=_work(tmp_path), env=_env())
    replayed = run([sys.executable, "-m", "replaydbg", "replay", str(tmp_path / "r.rdbg")], cwd=tmp_path, env=_env())

    _assert_unharmed(recorded, tmp_path)
    assert (replayed.stdout, replayed.status) == ("", 6), replayed.stderr
    assert "the recording reached its size limit" in replayed.stderr


def test_a_file_size_limit_of_the_process(tmp_path: Path) -> None:
    """RLIMIT_FSIZE, in blocks of 512 bytes: the log cannot grow past it."""
    recording = tmp_path / "r.rdbg"
    command = ["sh", "-c", 'ulimit -f 8000; exec "$@"', "sh", *_record(recording)]

    recorded = run(command, cwd=_work(tmp_path), env=_env())

    _assert_unharmed(recorded, tmp_path)
    assert "ulimit -f" in (read_figures(_found(recording)).reason or "")
    _assert_replays_beginning(_found(recording), recorded)


@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "lambda *_: print('handled')"])
def test_a_file_size_limit_sends_the_program_no_signal(handler: str, tmp_path: Path) -> None:
    """Python ignores SIGXFSZ; a program may not."""
    recording = tmp_path / "r.rdbg"
    work = _work(tmp_path)
    program = work / "program.py"
    program.write_text(f"import signal\nsignal.signal(signal.SIGXFSZ, {handler})\n" + program.read_text())
    command = ["sh", "-c", 'ulimit -f 8000; exec "$@"', "sh", *_record(recording)]

    recorded = run(command, cwd=work, env=_env())

    _assert_unharmed(recorded, tmp_path)
    assert "handled" not in recorded.stdout
    assert "ulimit -f" in (read_figures(_found(recording)).reason or "")


def test_no_room_for_the_log(tmp_path: Path) -> None:
    """The program is not started, one sentence gives the reason, and nothing is left behind."""
    recording = tmp_path / "r.rdbg"
    command = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", *_record(recording)]

    recorded = run(command, cwd=_work(tmp_path), env=_env())

    assert (recorded.stdout, recorded.status) == ("", 2)
    assert recorded.stderr.count("\n") == 1
    assert "File too large. The program was not started." in recorded.stderr
    assert not list(tmp_path.glob("r.rdbg*"))


def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small file system")
    try:
        recorded = run(_record(disk / "r.rdbg"), cwd=_work(tmp_path), env=_env())

        _assert_unharmed(recorded, tmp_path)
        _assert_replays_beginning(_found(disk / "r.rdbg"), recorded)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full_when_the_program_is_to_begin(tmp_path: Path) -> None:
    """There is room for one of its two logs: the program is not started, a sentence explains it, nothing is left."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small file system")
    try:
        recorded = run(_record(disk / "r.rdbg"), cwd=_work(tmp_path), env=_env())

        assert (recorded.stdout, recorded.status) == ("", 2)
        assert recorded.stderr.count("\n") == 1
        assert "No space left on device. The program was not started." in recorded.stderr
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_no_process_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live directory has been made by then, and is removed again."""

    def fork() -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", fork)

    with pytest.raises(OSError, match="Resource temporarily unavailable"):
        record(["-c", "pass"], output=tmp_path / "r.rdbg")

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "place", ["/proc/r.rdbg", "/sys/r.rdbg", "/dev/full", "/dev/null/r.rdbg", "/no/such/folder/r.rdbg"]
)
def test_a_place_where_nothing_can_be_written(place: str, tmp_path: Path) -> None:
    """Nothing is recorded: the program runs as usual, or is not started, and a sentence names the place."""
    recorded = run(_record(Path(place)), cwd=_work(tmp_path), env=_env())

    assert "Traceback" not in recorded.stderr, recorded.stderr
    assert place.rsplit("/", 1)[0] in recorded.stderr
    assert recorded.stdout == "" or recorded.stdout.endswith(_LAST_LINE)
    assert recorded.status == (_STATUS if recorded.stdout else 2)


def test_an_existing_recording_is_not_lost_to_a_failed_start(tmp_path: Path) -> None:
    recording = tmp_path / "r.rdbg"
    recording.write_bytes(b"something that lies there")

    recorded = run(tool.record(sys.executable, recording, ["missing-program.py"]), cwd=_work(tmp_path), env=_env())

    assert recorded.status == 2
    assert "Traceback" not in recorded.stderr
    assert recording.read_bytes() == b"something that lies there"


def _record(recording: Path, *options: str) -> list[str]:
    command = tool.record(sys.executable, recording, ["program.py"])
    place = command.index("--")
    return [*command[:place], *options, *command[place:]]


def _work(folder: Path) -> Path:
    work = folder / "work"
    work.mkdir()
    (work / "program.py").write_text(_PROGRAM)
    return work


def _assert_unharmed(recorded: Outcome, folder: Path) -> None:
    assert recorded.status == _STATUS, recorded.stderr
    assert recorded.stdout.endswith(_LAST_LINE)
    assert (folder / "work" / "made.txt").read_text() == "made by the program"
    assert "Traceback" not in recorded.stderr


def _found(recording: Path) -> Path:
    """Return the sealed file; the live directory if there was no room to seal."""
    return recording if recording.exists() else recording.with_name(recording.name + "-live")


def _assert_replays_beginning(recording: Path, recorded: Outcome) -> None:
    replayed = run(tool.replay(sys.executable, recording), cwd=recording.parent, env=_env())
    assert replayed.stdout.startswith("0 "), replayed
    assert recorded.stdout.startswith(replayed.stdout)
    assert replayed.status != tool.DIVERGED, replayed.stderr
    assert "Traceback" not in replayed.stderr


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath)}
