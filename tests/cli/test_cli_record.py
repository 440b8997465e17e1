"""`replaydbg record` separates its own words from the interpreter's and from the program's."""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaydbg.cli.main import main
from replaydbg.cli.running import record
from replaydbg.launch.interpreter import leading_options
from replaydbg.launch.process import Ended
from replaydbg.log.reader import open_recording
from replaydbg.record import RecordResult
from replaydbg.record.place import absolute_output
from replaydbg.record.sealing import check_begun
from tests.harness.replays import Outcome, passed_on, run


def _split(*words: str) -> tuple[list[str], list[str]]:
    parser = argparse.ArgumentParser()
    record.add_arguments(parser)
    return record.split_words(parser, list(words))


@pytest.mark.parametrize(
    ("words", "own", "program"),
    [
        ("prog.py -q", "", "prog.py -q"),
        ("-q prog.py -o x", "-q", "prog.py -o x"),
        ("-c code -q", "", "-c code -q"),
        ("-m module --flag", "", "-m module --flag"),
        ("-mpdb prog.py", "", "-mpdb prog.py"),
        ("-o FILE -m module", "-o FILE", "-m module"),
        ("-oFILE --max-size=2G -- -O prog.py", "-oFILE --max-size=2G", "-O prog.py"),
        ("--output FILE --json -- -X dev -- x", "--output FILE --json", "-X dev -- x"),
        ("-- -q", "", "-q"),
        ("-q", "-q", ""),
        ("", "", ""),
    ],
)
def test_own_words_end_where_the_program_begins(words: str, own: str, program: str) -> None:
    assert _split(*words.split()) == (own.split(), program.split())


def test_an_option_that_is_not_ours_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["record", "--outptu", "x", "prog.py"])

    assert ended.value.code == 2
    assert "'--outptu'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "options", "program"),
    [
        ("-O -X dev prog.py -O", "-O -X dev", "prog.py -O"),
        ("-Bm pdb x", "-B", "-m pdb x"),
        ("-mpdb x", "", "-m pdb x"),
        ("-BWignore -c code", "-BWignore", "-c code"),
        ("-Xdev -m x", "-Xdev", "-m x"),
        ("--check-hash-based-pycs always x.py", "--check-hash-based-pycs always", "x.py"),
        ("--unknown x.py", "", "--unknown x.py"),
    ],
)
def test_options_of_the_interpreter_end_where_its_program_begins(words: str, options: str, program: str) -> None:
    assert leading_options(words.split()) == (options.split(), program.split())


@pytest.mark.slow
@pytest.mark.parametrize("words", [["-c", "print(41 + 1)"], ["-mprogram"], ["--", "-O", "-X", "dev", "-m", "program"]])
def test_a_program_is_recorded_however_it_is_named(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print(41 + 1)\n")
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "r.rdbg", *words]

    recorded = run(command, cwd=tmp_path, env=passed_on())

    assert (recorded.stdout, recorded.status) == ("42\n", 0), recorded.stderr


_SHOWS_ITSELF = "import sys; print(__file__, sys.path[0], sys.argv, sys._getframe().f_code.co_filename)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["./x.py", "../x.py", "link/../x.py", "link/y.py", ".//x.py", "./package", "../here/package/", "."]
)
def test_a_program_has_the_paths_that_it_has_unrecorded(name: str, tmp_path: Path) -> None:
    """Behind a link, `..` is the parent of where it leads."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere" / "deep"
    (here / "package").mkdir(parents=True)
    elsewhere.mkdir(parents=True)
    (here / "link").symlink_to(elsewhere)
    for path in (here, tmp_path, tmp_path / "elsewhere"):
        (path / "x.py").write_text(_SHOWS_ITSELF)
    (elsewhere / "y.py").write_text(_SHOWS_ITSELF)
    for path in (here, here / "package"):
        (path / "__main__.py").write_text(_SHOWS_ITSELF)
    plain = run([sys.executable, name], cwd=here, env=passed_on())
    recorded = _tool("record", "-q", "-o", str(tmp_path / "r.rdbg"), name, cwd=here)
    replayed = _tool("replay", str(tmp_path / "r.rdbg"), cwd=tmp_path)

    assert plain.status == 0, plain.stderr
    assert (recorded.stdout, recorded.status) == (plain.stdout, 0), recorded.stderr
    assert (replayed.stdout, replayed.status) == (plain.stdout, 0), replayed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_before_the_interpreter_begins(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C then ends the command as at any other time; what else ended it gets a sentence."""

    def refuse(*arguments: object, **options: object) -> RecordResult:
        check_begun(tmp_path / "r.rdbg-live", Ended(-number, 0.0))
        raise AssertionError

    monkeypatch.setattr(record, "record", refuse)
    monkeypatch.setattr(record, "end_like", lambda status: 128 - status)
    code = main(["record", "-o", str(tmp_path / "r.rdbg"), "-c", "pass"])

    if number == signal.SIGKILL:
        assert (code, capsys.readouterr().err.count("\n")) == (2, 1)
    else:
        assert (code, capsys.readouterr().err) == (128 + number, "")


@pytest.mark.slow
def test_the_header_describes_the_streams_that_the_program_gets(tmp_path: Path) -> None:
    """The recorded environment is the program's, not the launcher's."""
    script = "import os, pathlib; from replaydbg.record import record; r, w = os.pipe(); "
    script += "record(['-c', 'print(1)'], output=pathlib.Path('r.rdbg'), stdout=w, stderr=os.open('e', os.O_CREAT | 1))"

    made = run([sys.executable, "-c", script], cwd=tmp_path, env=passed_on())

    assert made.status == 0, made.stderr
    with open_recording(tmp_path / "r.rdbg") as recording:
        assert recording.header.stdio[1:] == ("pipe", "file")


@pytest.mark.slow
def test_a_recording_outside_the_store_is_replayed_by_its_path(tmp_path: Path) -> None:
    """The command that `record` prints at the end works unchanged."""
    recorded = run(
        [sys.executable, "-m", "replaydbg", "record", "-o", "my run.rdbg", "-c", "print(7)"],
        cwd=tmp_path,
        env=passed_on(),
    )
    assert recorded.status == 0, recorded.stderr
    _, _, command = recorded.stderr.splitlines()[-1].partition("to replay it: replaydbg ")
    words = shlex.split(command)

    replayed = run([sys.executable, "-m", "replaydbg", *words], cwd=Path("/"), env=passed_on())

    assert (replayed.stdout, replayed.status) == ("7\n", 0), replayed.stderr


@pytest.mark.slow
def test_after_a_failure_the_summary_names_the_debugger(tmp_path: Path) -> None:
    tool = [sys.executable, "-m", "replaydbg", "record", "-o", "one", "-c"]

    failed = run([*tool, "print(1 / 0)"], cwd=tmp_path, env=passed_on())
    passed = run([*tool, "print(1)"], cwd=tmp_path, env=passed_on())

    assert f"to find out why it failed: replaydbg debug {tmp_path / 'one.rdbg'}" in failed.stderr
    assert "to find out" not in passed.stderr


@pytest.mark.slow
def test_a_divergence_shows_both_sides_alike_and_a_command_that_works(tmp_path: Path) -> None:
    """An edited source, run on request, writes other bytes."""
    (tmp_path / "said.py").write_text("WORD = 'first'\n")
    (tmp_path / "program.py").write_text("import said\nprint(said.WORD, flush=True)\n")
    tool = [sys.executable, "-m", "replaydbg"]
    recorded = run([*tool, "record", "-q", "-o", "a run.rdbg", "program.py"], cwd=tmp_path, env=passed_on())
    assert recorded.status == 0, recorded.stderr
    (tmp_path / "said.py").write_text("WORD = 'second'\n")

    replayed = run([*tool, "replay", "--current-source", "a run.rdbg"], cwd=tmp_path, env=passed_on())

    assert replayed.status == 4, replayed.stderr
    lines = replayed.stderr.splitlines()
    shown = "_io.FileIO.write(<file 1>, <output bytes>)"
    assert f"  recorded: {shown}" in lines
    assert f"  observed: {shown} with other bytes: b'second\\n'" in lines
    _, *words = shlex.split(lines[-1].partition("this point: ")[2])
    stopped = run([*tool, *words], cwd=tmp_path, env=passed_on())
    assert stopped.status == 0, stopped.stderr


def test_a_name_without_its_ending_is_completed_and_found(tmp_path: Path) -> None:
    recorded = _tool("record", "-o", "R", "-c", "print(1)", cwd=tmp_path)
    replayed = _tool("replay", "R", cwd=tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["R.rdbg"]
    assert "replaydbg: .rdbg was added to the name R\n" in recorded.stderr
    assert (replayed.stdout, replayed.status) == ("1\n", 0)
    assert "was added" not in _tool("record", "-o", "S.rdbg", "-c", "print(1)", cwd=tmp_path).stderr


@pytest.mark.parametrize("name", ["../kept/r.rdbg", "../kept/r"])
def test_a_path_with_dots_is_shown_without_them(name: str, tmp_path: Path) -> None:
    work, kept = tmp_path / "work", tmp_path / "kept"
    work.mkdir()
    kept.mkdir()

    done = _tool("record", "-o", name, "-c", "1", cwd=work)

    assert f" {kept / 'r.rdbg'} (" in done.stderr
    assert done.stderr.endswith(f"replaydbg replay {kept / 'r.rdbg'}\n")


def test_dots_behind_a_link_mean_what_they_mean_to_the_system(tmp_path: Path) -> None:
    (tmp_path / "far" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "inner")

    assert absolute_output(tmp_path / "link" / ".." / "r.rdbg") == tmp_path.resolve() / "far" / "r.rdbg"
    assert absolute_output(tmp_path / "link" / "r.rdbg") == tmp_path / "link" / "r.rdbg"


def test_a_replay_repeats_what_the_recording_does_not_cover(tmp_path: Path) -> None:
    _tool("record", "-q", "-o", "r.rdbg", "--", "-X", "importtime", "-c", "print(1)", cwd=tmp_path)

    replayed = _tool("replay", "r.rdbg", cwd=tmp_path)
    quiet = _tool("replay", "-q", "r.rdbg", cwd=tmp_path)

    assert "replaydbg: not covered by the recording: -X importtime: " in replayed.stderr
    assert "not covered" not in quiet.stderr


def test_a_program_in_a_pipe_is_refused_before_it_starts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    command = [sys.executable, "-m", "replaydbg", "record", "-o", "r.rdbg"]

    for name, text in (("fifo", None), ("/dev/stdin", "print('ran')"), ("/dev/null", None)):
        ran = subprocess.run(
            [*command, name], cwd=tmp_path, input=text, capture_output=True, text=True, check=False, timeout=60
        )

        kind = "device" if name == "/dev/null" else "pipe"
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr == (
            f"replaydbg: Cannot record a program from a {kind} ({name!r}). The program was not started. "
            "Save it to a file and record that file.\n"
        )
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_crash_of_the_program_is_the_exit_code_that_a_shell_shows(number: int, tmp_path: Path) -> None:
    code = f"import os; os.kill(os.getpid(), {number})"

    recorded = subprocess.run(
        [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "r.rdbg", "-c", code], cwd=tmp_path, check=False
    )

    assert recorded.returncode == 128 + number


def _tool(*words: str, cwd: Path) -> Outcome:
    return run([sys.executable, "-m", "replaydbg", *words], cwd=cwd, env=passed_on())


def test_a_program_that_removes_its_recording_keeps_its_exit_code(tmp_path: Path) -> None:
    for options in ([], ["--children=fork"]):
        code = "import pathlib, shutil, sys\nfor each in pathlib.Path().glob('out*'): shutil.rmtree(each)\nsys.exit(3)"
        words = [sys.executable, "-m", "replaydbg", "record", *options, "-o", "out", "-c", code]
        recorded = run(words, cwd=tmp_path, env=passed_on())

        assert recorded.status == 3, recorded
        assert "it was removed while the program ran" in recorded.stderr


def test_a_module_of_the_programs_named_like_one_of_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "resource.py").write_text("class Resource: pass\n")
    words = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "out", "-c", "import resource, sys; sys.exit(3)"]

    recorded = run(words, cwd=tmp_path, env={**passed_on(), "PYTHONPATH": str(tmp_path / "modules")})

    assert (recorded.status, recorded.stderr) == (3, "")


def test_the_seed_of_the_first_failure_is_reported(tmp_path: Path) -> None:
    program = "import os; raise SystemExit(os.path.exists('ran') or open('ran', 'w').close())"
    command = [sys.executable, "-m", "replaydbg", "record", "--chaos", "4", "--chaos-runs", "3", "-o", "x.rdbg"]

    done = subprocess.run(
        [*command, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )

    assert done.returncode == 1, done
    assert "replaydbg: run 2 failed, with --chaos 5\n" in done.stderr


def test_a_recording_is_sealed_in_the_background(tmp_path: Path) -> None:
    """Whoever waits for the program does not wait for its recording, and may end the process group at once."""
    (tmp_path / "program.py").write_text("print('done'); raise SystemExit(3)")
    words = ["record", "--seal-in-background", "--children=none", "-o", "run.rdbg", "program.py"]

    recorded = run([sys.executable, "-m", "replaydbg", *words], cwd=tmp_path, env=passed_on())
    until = time.monotonic() + 60
    while (tmp_path / "run.rdbg-live").exists() and time.monotonic() < until:
        time.sleep(0.02)

    assert (recorded.status, recorded.stdout, recorded.stderr) == (3, "done\n", "")
    with open_recording(tmp_path / "run.rdbg") as recording:
        assert recording.end is not None and recording.end.status == 3
