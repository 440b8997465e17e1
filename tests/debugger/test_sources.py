"""The source that the debugger shows is the recorded one, and it knows the program's own first line."""

import os
import subprocess
import sys
from pathlib import Path

from replaydbg.debugger import Session
from replaydbg.debugger.source.source_files import SourceFiles
from tests.harness.recording import record_file
from tests.harness.typed import Typed


def test_source_comes_from_the_recording(tmp_path: Path) -> None:
    program = tmp_path / "gone.py"
    (tmp_path / "helper.py").write_text("def help_me():\n    return 'as recorded'\n")
    program.write_text("import helper\nvalue = helper.help_me()\nprint(value)\n")
    recording = record_file(program, tmp_path)
    program.unlink()
    (tmp_path / "helper.py").write_text("# edited\n")

    with Session(recording) as session:
        typed = Typed(session)
        shown = typed("start", "b help_me", "c", "ll", "up")

    assert "return 'as recorded'" in shown
    assert "value = helper.help_me()" in shown
    assert "edited" not in shown


def test_modules_and_commands_begin_at_their_own_line(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("one = 1\ntwo = 2\n")
    recordings = []
    for at, words in enumerate((["-m", "package"], ["-c", "one = 1\ntwo = 2\n"])):
        recording = tmp_path / f"{at}.rdbg"
        command = [sys.executable, "-m", "replaydbg", "record", "-o", str(recording), *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
        recordings.append(recording)

    for recording in recordings:
        with Session(recording) as session:
            assert "-> 1  one = 1" in Typed(session)("start")


def test_what_is_no_file_is_not_read_as_source(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    recording = record_file(_compiled_as(pipe, tmp_path), tmp_path)
    pipe.unlink()
    os.mkfifo(pipe)

    with Session(recording) as session:
        assert "pipe.py:2 made" in Typed(session)("start", "b made", "c", "ll")
        assert SourceFiles(recording).lines(str(pipe)) == ()
        assert SourceFiles(recording).lines("/dev/zero") == ()


def test_a_file_too_large_for_a_source_is_not_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.py"
    recording = record_file(_compiled_as(huge, tmp_path), tmp_path)
    with huge.open("wb") as file:
        file.truncate(1 << 40)

    assert SourceFiles(recording).lines(str(huge)) == ()


def _compiled_as(file: Path, folder: Path) -> Path:
    """Return a program with code that claims to come from `file`."""
    program = folder / "program.py"
    program.write_text(f"exec(compile('def made():\\n    value = 1\\nmade()\\n', {str(file)!r}, 'exec'))\n")
    file.write_text("")
    return program


def test_it_is_known_whether_a_file_has_the_recorded_text(tmp_path: Path) -> None:
    program = tmp_path / "prog.py"
    program.write_text("value = 1\n")
    recording = record_file(program, tmp_path)
    sources = SourceFiles(recording)

    assert sources.is_text_of(str(program), program)
    assert not sources.is_text_of(str(program), tmp_path / "other.py")
    program.write_text("value = 2\n")
    assert not sources.is_text_of(str(program), program)


def test_source_that_only_linecache_has_is_shown(tmp_path: Path) -> None:
    """As that of a notebook's cell, whose file never exists."""
    program = tmp_path / "prog.py"
    program.write_text(
        "import linecache\n"
        "text = 'total = 1\\ntotal += 41\\n'\n"
        "name = '/tmp/kernel/cell.py'\n"
        "linecache.cache[name] = (len(text), None, text.splitlines(True), name)\n"
        "exec(compile(text, name, 'exec'))\n"
        "print(total)\n"
    )
    recording = record_file(program, tmp_path)

    with Session(recording) as session:
        shown = Typed(session)("start", "b cell.py:2", "c", "list", "rc", "c")
        why = Typed(session)("seek @end", "why total")
        assert session.sources.lines("/tmp/kernel/none.py") == ()

    assert "-> 2  total += 41" in shown
    assert "-> 2  total += 41" in why
    assert session.sources.line("/tmp/kernel/cell.py", 1) == "total = 1"
