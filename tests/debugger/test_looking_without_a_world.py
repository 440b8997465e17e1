"""Inspect recordings without anything outside; the messages for a recording that cannot be run."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import Corrupt, ReplaydbgError
from replaydbg.replay import replay
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "shown_by_its_width.py"


def text_of(session: Session, expression: str) -> str:
    told = session.ask.evaluate(expression)
    assert told.value is not None, told.error
    return told.value.text


def test_objects_that_lay_themselves_out_for_a_terminal_are_shown(tmp_path: Path) -> None:
    with Session(record_file(PROGRAM, tmp_path)) as session:
        assert text_of(session, "table") == "-" * 80
        assert text_of(session, "sys.__stdout__.fileno(), sys.__stdout__.isatty()") == "(1, False)"


def test_local_and_global_names_are_told_apart(tmp_path: Path) -> None:
    with Session(record_file(PROGRAM, tmp_path)) as session:
        assert text_of(session, "sorted(locals())") == "['held']"
        assert text_of(session, "'held' in globals(), 'Table' in globals()") == "(False, True)"


def test_each_slot_is_shown_once(tmp_path: Path) -> None:
    with Session(record_file(PROGRAM, tmp_path)) as session:
        assert [each.name for each in session.ask.parts("held")] == [".__hidden", ".more", ".name"]


def test_a_recording_that_lacks_modules_is_not_run(tmp_path: Path) -> None:
    recording = record_file(PROGRAM, tmp_path)
    data = recording.read_bytes()
    place = data.index(b"world", 64) + 200
    recording.write_bytes(data[:place] + bytes((data[place] ^ 4,)) + data[place + 1 :])
    with pytest.raises(Corrupt, match="a part of the modules that it imported is missing"):
        replay(recording)
    with pytest.raises(ReplaydbgError, match="a part of the modules that it imported is missing"):
        Session(recording)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed: str, tmp_path: Path) -> None:
    recording = record_file(PROGRAM, tmp_path)
    command = f"{sys.executable} -m replaydbg debug -c 'print 1' {recording} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=os.environ, timeout=60, input=b"")
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


def test_exceptions_are_named_with_their_number(tmp_path: Path) -> None:
    program = PROGRAM.with_name("raises_numbers.py")
    with Session(record_file(program, tmp_path, status=5)) as session:
        assert session.here.message == "SystemExit: 5"
        texts = [each.text for each in session.index.raised if each.count > session.first_own]
        assert texts[:5] == ["KeyError: -7", "ValueError", "LookupError", "OSError", "SystemExit: 5"]


def test_a_full_disk_keeps_no_file_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = record_file(PROGRAM, tmp_path)

    def make_only_the_name(path: str, flags: int) -> int:
        Path(path).touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("replaydbg.debugger.first_pass.run_index.private", make_only_the_name)
    with Session(recording):
        assert [each.name for each in tmp_path.iterdir()] == [recording.name]
