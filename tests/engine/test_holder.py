"""Checkpoints that are made during a recording, and held until the debugger starts."""

import os
import socket
import struct
import sys
import threading
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.engine.holder import socket_name, take_over
from replaydbg.errors import ReplaydbgError
from replaydbg.log.coding.encode import encode_value
from tests.harness import tool
from tests.harness.process import run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

TRAVEL = Path(__file__).parents[2] / "fixtures" / "travel"


def record(program: Path, folder: Path, *options: str) -> Path:
    recording = folder / f"{program.stem}.rdbg"
    command = tool.record(sys.executable, recording, [str(program)], ("--keep-checkpoints", *options))
    recorded = run(command, cwd=folder, env=without_steering(os.environ), timeout=60)
    assert recorded.status == 1, recorded.stderr
    return recording


def held(recording: Path) -> Session:
    """Open it as soon as its checkpoints are held, a moment after the recording has been sealed."""

    def open_it() -> Session | None:
        session = Session(recording)
        if session.was_held:
            return session
        session.close()
        return None

    found = wait_until(open_it, message=lambda: "nobody held its checkpoints")
    assert found is not None
    return found


def test_what_is_held_is_what_a_pass_of_its_own_finds(tmp_path: Path) -> None:
    for name in ("ends_by_an_exception.py", "changed_while_it_waits.py", "threads_while_recording.py"):
        recording = record(TRAVEL / name, tmp_path)
        with held(recording) as session:
            index, here = session.index, session.here
            session.reverse_step()
            assert session.seek(here.moment).count == here.count
        with Session(recording) as again:
            assert not again.was_held
            assert (again.index.digest, again.index.total) == (index.digest, index.total)
            assert again.here.stack == here.stack


def test_addresses_are_equal_in_what_is_held(tmp_path: Path) -> None:
    with held(record(TRAVEL / "threads_while_recording.py", tmp_path)) as session:
        session.seek("@exc")
        told = session.run.why("results")
        assert (told.function, told.line) == ("work", 9)
        assert session.run.why("largest.total").function == "work"


def test_nothing_is_held_for_a_recording_without(tmp_path: Path) -> None:
    assert take_over(tmp_path / "none.rdbg") is None


@pytest.mark.parametrize("sent", [3, 5])
def test_what_is_received_in_vain_is_closed(tmp_path: Path, sent: int) -> None:
    recording = tmp_path / "none.rdbg"

    def hold() -> None:
        debugger, _ = listener.accept()
        told = encode_value(({"kind": "exit", "status": 0}, os.getpid(), []))
        debugger.sendall(struct.pack("<I", len(told)) + told)
        debugger.recv(1)
        socket.send_fds(debugger, [b"d"], [listener.fileno()] * sent)
        if sent == 5:
            debugger.recv(1)
        debugger.close()

    before = sorted(each.name for each in Path("/proc/self/fd").iterdir())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_name(recording))
        listener.listen(1)
        holder = threading.Thread(target=hold)
        holder.start()
        if sent == 5:  # all needed ones arrive, but the recording has been deleted
            with pytest.raises(ReplaydbgError):
                take_over(recording)
        else:
            assert take_over(recording) is None
        holder.join()
    assert sorted(each.name for each in Path("/proc/self/fd").iterdir()) == before
