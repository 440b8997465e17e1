"""The sources that a program imported are in its recording, also in one that could not be sealed."""

from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.record import record
from replaydbg.record.caches.sources import source_name

_MODULE = "VALUE = 1\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "used.py").write_text(_MODULE)
    (tmp_path / "same.py").write_text(_MODULE)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "main.py").write_text("import used, same, empty\n")
    return tmp_path / "main.py"


def _sources(path: Path) -> dict[str, bytes]:
    """Return the recorded sources of the program's directory by file name."""
    with open_recording(path) as recording:
        assert recording.end is not None
        named = recording.end.sources
        kept = {name for name in recording.sections if name.startswith("source/")}
        return {
            Path(file).name: recording.section(f"source/{name}")
            for file, name in named.items()
            if f"source/{name}" in kept
        }


def test_each_content_is_stored_once(program: Path) -> None:
    result = record([str(program)], output=program.with_name("r.rdbg"))

    with open_recording(result.path) as recording:
        assert recording.end is not None
        names = [recording.end.sources[str(program.with_name(each))] for each in ("used.py", "same.py")]
        assert names == [source_name(_MODULE.encode())] * 2
        assert recording.sections.count(f"source/{names[0]}") == 1
    assert _sources(result.path)["main.py"] == program.read_bytes()


def test_a_recording_that_cannot_be_sealed_has_them_beside_its_log(program: Path) -> None:
    """Something else has taken its name while the program ran."""
    program.write_text("import used, os\nos.mkdir(os.path.join(os.path.dirname(used.__file__), 'r.rdbg'))\n")

    result = record([str(program)], output=program.with_name("r.rdbg"))

    assert result.problem is not None
    assert result.path.name == "r.rdbg-live"
    assert _sources(result.path)["used.py"] == _MODULE.encode()


@pytest.mark.parametrize("secret", ["", "hunter2hunter2"])
def test_secrets_that_are_left_in_the_clear_are_reported(
    program: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    if secret:
        monkeypatch.setenv("MY_TOKEN", secret)
    program.write_text("import used, os\nos.mkdir(os.path.join(os.path.dirname(used.__file__), 'r.rdbg'))\n")

    problem = record([str(program)], output=program.with_name("r.rdbg")).problem

    assert problem is not None and "stays a directory" in problem
    assert problem.endswith("in which its secrets are in the clear") is bool(secret)


def test_a_source_that_changed_meanwhile_is_stored_as_it_is_now(program: Path) -> None:
    program.write_text("import used, pathlib\npathlib.Path(used.__file__).write_text('VALUE = 22\\n')\n")

    result = record([str(program)], output=program.with_name("r.rdbg"))

    assert _sources(result.path)["used.py"] == b"VALUE = 22\n"
