"""The hook `compensate` is called when nothing else can stop the program from going live, with all that was done."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from replaydbg.errors import CannotResume
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.recovery.group_launcher import resume_group
from replaydbg.resume import past
from replaydbg.resume.going_live import ResumeChoices
from replaydbg.resume.hooks import Hooks
from replaydbg.resume.launcher import resume
from replaydbg.resume.outside_acts import OutsideAct
from tests.recovery.killed_groups import record_killed
from tests.resume.going_on import record_in

pytestmark = pytest.mark.slow

_PROGRAM = """import os
with open("out", "a", buffering=1) as file:
    file.write("one\\n")
    os.getppid()
    file.write("two\\n")
    os.mkdir("made")
    file.write("three\\n")
"""


class _Undoes:
    """A hook that calls a function."""

    def __init__(self, undo: Callable[[], object]) -> None:
        self.acts: list[OutsideAct] = []
        self._undo = undo

    def compensate(self, acts: Sequence[OutsideAct]) -> None:
        self.acts = list(acts)
        self._undo()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(_PROGRAM)
    assert record_in(tmp_path, "one").status == 0
    (tmp_path / "made").rmdir()
    return tmp_path


def _event(folder: Path, gate: str, index: int = 0) -> int:
    with open_recording(folder / "one.rdbg") as recording:
        own = (event for event in recording.events(gate=gate) if isinstance(event, Event))
        return [event.number for event in own if "program.py" in str(event.site)][index]


def _resume(folder: Path, at: int, undoes: _Undoes) -> int:
    hooks = Hooks("one", [("undoes", undoes)])
    choices = ResumeChoices(at=at)
    return resume(folder / "one.rdbg", choices=choices, output=folder / "two.rdbg", hooks=hooks).status


def test_it_is_not_called_if_the_resumption_is_refused(folder: Path) -> None:
    (folder / "out").write_text("o")
    undoes = _Undoes(lambda: None)

    with pytest.raises(CannotResume, match="out is shorter: 1 bytes, recorded 4"):
        _resume(folder, _event(folder, "posix.getppid"), undoes)

    assert undoes.acts == []


def test_what_it_leaves_in_a_file_stops_the_resumption(folder: Path) -> None:
    undoes = _Undoes(lambda: None)

    with pytest.raises(CannotResume, match="although undoes undid what was done after it"):
        _resume(folder, _event(folder, "posix.getppid"), undoes)

    assert undoes.acts
    assert (folder / "out").read_text() == "one\ntwo\nthree\n"


def test_a_call_that_it_undoes_is_made_again(folder: Path) -> None:
    """What the disk has of the call at the moment is gone when the program runs."""
    undoes = _Undoes(lambda: os.truncate(folder / "out", 4))

    assert _resume(folder, _event(folder, "_io.FileIO.write", 1), undoes) == 0

    assert [act.call for act in undoes.acts] == ["_io.FileIO.write", "posix.mkdir", "_io.FileIO.write"]
    assert (folder / "out").read_text() == "one\ntwo\nthree\n"


def test_it_gets_all_acts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MOST_ACTS", 1)
    undoes = _Undoes(lambda: os.truncate(folder / "out", 4))

    assert _resume(folder, _event(folder, "posix.getppid"), undoes) == 0

    assert len(undoes.acts) == 3


# When it is resumed, its standard input is at its end.
_GROUP = """import os, sys
if not os.fork():
    with open("out", "a", buffering=1) as file:
        file.write("one\\n")
        os.getppid()
        os.mkdir("made")
        open("ready", "w").close()
        os.read(0, 1)
    os._exit(0)
os.wait()
"""


def _resume_group(folder: Path, undoes: _Undoes) -> int:
    with open_recording(folder / "one.rdbgs" / "2.rdbg") as recording:
        (made,) = (event.number for event in recording.events(gate="posix.mkdir") if isinstance(event, Event))
    hooks = Hooks("one", [("undoes", undoes)])
    return resume_group(folder / "one.rdbgs", at={2: made - 1}, output=folder / "two", hooks=hooks).status


def test_it_is_not_called_if_a_group_is_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, _GROUP)
    (tmp_path / "out").write_text("o")
    undoes = _Undoes((tmp_path / "made").rmdir)

    with pytest.raises(CannotResume, match="out is shorter: 1 bytes, recorded 4"):
        _resume_group(tmp_path, undoes)

    assert undoes.acts == []


def test_a_hook_undoes_what_a_group_has_done(tmp_path: Path) -> None:
    record_killed(tmp_path, _GROUP)
    undoes = _Undoes((tmp_path / "made").rmdir)

    _resume_group(tmp_path, undoes)

    assert [(act.process, act.call) for act in undoes.acts] == [(2, "posix.mkdir")]
    assert (tmp_path / "made").is_dir()
