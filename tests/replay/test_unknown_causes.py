"""An unknown cause is not called damage: an undamaged recording whose replay ends unexpectedly is not blamed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.replay.report import ReplayStop
from replaydbg.replay.result import why_it_ends
from tests.harness import tool
from tests.harness.build import example


def stop(kind: str) -> ReplayStop:
    return ReplayStop(kind, "a number cannot be read", "", 2, None, b"", (), 0, 0, 0, "", 0, False)


def test_a_sound_recording_that_the_core_cannot_use_is_not_called_damaged(tmp_path: Path) -> None:
    path = example().write(tmp_path)
    with open_recording(path) as recording:
        divergence = stop("corrupt").divergence(recording, "run-1")

        assert divergence.kind == "unusable"
        assert "damaged" not in str(divergence)
        assert "a number cannot be read" in str(divergence)
        assert "damaged" not in why_it_ends(recording, True)


def test_a_damaged_recording_is_called_damaged(tmp_path: Path) -> None:
    path = example(rounds=2000).write(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with open_recording(path) as recording:
        divergence = stop("corrupt").divergence(recording, "run-1")

        assert divergence.kind == "corrupt"
        assert "damaged" in why_it_ends(recording, True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_replay_that_is_killed_names_the_signal(number: signal.Signals, tmp_path: Path) -> None:
    program, recording = tmp_path / "computes.py", tmp_path / "r.rdbg"
    program.write_text(
        "import os\nprint(os.getpid(), flush=True)\nfor _ in range(30_000_000):\n    pass\nprint('end')\n"
    )
    subprocess.run(tool.record(sys.executable, recording, [str(program)]), capture_output=True, timeout=60, check=True)

    with subprocess.Popen(
        tool.replay(sys.executable, recording), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as replay:
        assert replay.stdout is not None
        replay.stdout.readline()
        children = Path(f"/proc/{replay.pid}/task/{replay.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), number)
        _, said = replay.communicate(timeout=60)

    assert replay.returncode == tool.DIVERGED
    assert f"signal {number.value} ({number.name}) ended it" in said
    assert "damaged" not in said
