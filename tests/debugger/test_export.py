"""Export of objects from past moments."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import replaydbg
from replaydbg.cli.main import main
from replaydbg.debugger import Session
from replaydbg.debugger.exported import Missing, load
from replaydbg.debugger.object_export import Export
from replaydbg.errors import AskFailed, UsageError
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "holds_what_cannot_leave.py"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="module")
def session(recording: Path) -> Iterator[Session]:
    with Session(recording) as opened:
        yield opened


def written(export: Export, folder: Path) -> Path:
    path = folder / "x.dill"
    path.write_bytes(export.data)
    return path


def test_an_object_comes_along_with_its_classes_and_functions(session: Session, tmp_path: Path) -> None:
    found = session.run.export("data")
    assert (found.type, found.lost) == ("dict", ())
    code = (
        "import replaydbg, sys; d = replaydbg.load(sys.argv[1]);"
        "print(d['chain'].greeting(), d['add'](2), d['point'], d['self'] is d, d['when'])"
    )
    # A Python without the program's modules.
    told = subprocess.run(
        [sys.executable, "-c", code, str(written(found, tmp_path))], capture_output=True, text=True, timeout=60
    )
    assert told.stdout == "hello n299 3 Point(x=1, y=2) True 2020-01-02 00:00:00\n", told.stderr


def test_what_cannot_leave_is_named_and_the_rest_comes(session: Session, tmp_path: Path) -> None:
    found = session.run.export("basket")
    assert [(each.path, each.type) for each in found.lost] == [(".running['deep'][1]", "generator")]
    assert "cannot pickle" in found.lost[0].reason
    loaded = replaydbg.load(written(found, tmp_path))
    assert loaded.items == [1, 2, 3]
    missing = loaded.running["deep"][1]
    assert isinstance(missing, Missing)
    assert "a generator was not exported" in repr(missing)


def test_what_cannot_leave_as_a_whole_is_refused(session: Session) -> None:
    with pytest.raises(AskFailed, match="cannot pickle 'generator' object"):
        session.run.export("waiting")
    with pytest.raises(AskFailed, match="NameError"):
        session.run.export("nothing")
    with pytest.raises(UsageError, match="is not valid Python"):
        session.run.export("1 +")


def test_nothing_of_it_stays_in_the_program(session: Session) -> None:
    before = session.ask.evaluate("len(__import__('sys').modules)").value
    session.run.export("data")
    assert session.ask.evaluate("len(__import__('sys').modules)").value == before
    assert session.ask.evaluate("'dill' in __import__('sys').modules").value.text == "False"  # type: ignore[union-attr]


def test_the_past_is_what_it_was(session: Session, tmp_path: Path) -> None:
    count = next(each.count for each in session.run.history("number", most=3))
    session.seek(count)
    session.next()
    assert load(written(session.run.export("number"), tmp_path)) == 0
    session.seek("@end")
    assert load(written(session.run.export("number"), tmp_path)) == 299


def test_the_command(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "basket.dill"
    assert main(["export", str(recording), "basket", "-o", str(path), "-q"]) == 0
    assert path.stat().st_mode & 0o777 == 0o600
    said = capsys.readouterr().out
    assert "not saved: .running['deep'][1] (a generator): TypeError" in said
    assert load(path).items == [1, 2, 3]
    assert main(["export", str(recording), "data['point']", "-o", str(path), "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "Point"
    assert main(["export", str(recording), "data", "-o", str(tmp_path / "no" / "x"), "-q"]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["basket.dill"]


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x80\x04", b"c__nowhere\nnothing\n."])
def test_what_is_no_such_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.dill"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be loaded"):
        load(path)
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "none")
