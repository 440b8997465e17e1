"""Standard output and error: a replay writes the program's output, by whatever route it was written."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES, Case, cases

TIMEOUT = 60.0


@pytest.mark.parametrize("case", cases("streams"))
def test_streams_replay(case: Case) -> None:
    case.check()


# Redirections of a run's streams; `{}` is the file's name.
_KINDS = {
    "files": "> {}.out 2> {}.err",
    "appended": ">> {}.out 2>> {}.err",
    "one file": "> {}.out 2>&1",
    "one file, appended": ">> {}.out 2>&1",
    "one file, opened twice": "> {}.out 2> {}.out",
    "pipes": "2> {}.err | cat > {}.out",
    "one pipe": "2>&1 | cat > {}.out",
    "a third descriptor": "3>&1 > {}.out 2> {}.err",
}


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("program", ["opened_again", "moved_by_the_kernel", "moves_about", "printed_in_c", "received"])
def test_a_replay_that_is_redirected_in_the_same_way_writes_the_same_files(
    tmp_path: Path, kind: str, program: str
) -> None:
    recording = tmp_path / "recording.rdbg"
    source = FIXTURES / "streams" / f"{program}.py"

    _shell(tmp_path, tool.record(sys.executable, recording, [str(source)]), _KINDS[kind].replace("{}", "recorded"))
    _shell(tmp_path, tool.replay(sys.executable, recording), _KINDS[kind].replace("{}", "replayed"))

    for stream in ("out", "err"):
        recorded, replayed = (tmp_path / f"{run}.{stream}" for run in ("recorded", "replayed"))
        assert recorded.exists() == replayed.exists()
        if recorded.exists():
            assert recorded.read_bytes() == replayed.read_bytes()


@pytest.mark.parametrize("program", ["moved_by_the_kernel", "printed_in_c"])
@pytest.mark.parametrize(
    "kinds", [("pipes", "files"), ("files", "pipes"), ("files", "appended"), ("appended", "files")]
)
def test_a_program_that_only_writes_gives_the_same_bytes_however_it_is_redirected(
    tmp_path: Path, kinds: tuple[str, str], program: str
) -> None:
    recording = tmp_path / "recording.rdbg"
    source = FIXTURES / "streams" / f"{program}.py"

    _shell(tmp_path, tool.record(sys.executable, recording, [str(source)]), _KINDS[kinds[0]].replace("{}", "recorded"))
    _shell(tmp_path, tool.replay(sys.executable, recording), _KINDS[kinds[1]].replace("{}", "replayed"))

    for stream in ("out", "err"):
        recorded, replayed = (tmp_path / f"{run}.{stream}" for run in ("recorded", "replayed"))
        assert recorded.read_bytes() == replayed.read_bytes()


def test_a_replay_into_a_pipe_says_that_the_program_moved_about(tmp_path: Path) -> None:
    recording = tmp_path / "recording.rdbg"
    source = tmp_path / "program.py"
    source.write_text("import sys\nprint('aaaa', flush=True)\nsys.stdout.seek(0)\nprint('b', flush=True)\n")
    _shell(tmp_path, tool.record(sys.executable, recording, [str(source)]), "> recorded")

    replayed = subprocess.run(
        [sys.executable, "-m", "replaydbg", "replay", str(recording)], capture_output=True, text=True, timeout=TIMEOUT
    )

    assert (replayed.returncode, replayed.stdout) == (0, "aaaa\nb\n")
    assert "changed its position in its output file" in replayed.stderr


def test_a_replay_writes_nothing_before_the_place_where_its_output_began(tmp_path: Path) -> None:
    recording = tmp_path / "recording.rdbg"
    source = tmp_path / "program.py"
    source.write_text("import os\nos.write(1, b'aaaa')\nos.ftruncate(1, 0)\nos.pwrite(1, b'b', 0)\n")
    _shell(tmp_path, tool.record(sys.executable, recording, [str(source)]), "> recorded", before="printf kept")
    (tmp_path / "precious").write_text("precious")

    _shell(tmp_path, tool.replay(sys.executable, recording), ">> precious")

    assert (tmp_path / "precious").read_text().startswith("precious")


def test_a_terminal_gets_what_was_written_to_it_by_another_name(tmp_path: Path) -> None:
    recording = tmp_path / "recording.rdbg"
    source = tmp_path / "program.py"
    source.write_text(
        "import os\nprint('one', flush=True)\n"
        "with open(os.ttyname(1), 'w') as file: file.write('by its name\\n')\n"
        "with open('/dev/tty', 'w') as file: file.write('by /dev/tty\\n')\n"
        "print('two', flush=True)\n"
    )

    recorded = _at_terminal(tool.record(sys.executable, recording, [str(source)]))
    replayed = _at_terminal(tool.replay(sys.executable, recording))

    assert recorded == "one\nby its name\nby /dev/tty\ntwo\n"
    assert replayed == recorded


def test_a_map_of_the_output_file_ends_the_recording_with_a_sentence(tmp_path: Path) -> None:
    recording = tmp_path / "recording.rdbg"
    source = tmp_path / "program.py"
    source.write_text(
        "import mmap, os\nos.write(1, b'aaaa')\nwith open('/dev/stdout', 'r+b') as file:\n"
        "    with mmap.mmap(file.fileno(), 4) as map: map[0:1] = b'Z'\nprint('end')\n"
    )

    _shell(tmp_path, tool.record(sys.executable, recording, [str(source)]), "1<> recorded")
    replayed = subprocess.run(
        [sys.executable, "-m", "replaydbg", "replay", str(recording)], capture_output=True, text=True, timeout=TIMEOUT
    )

    assert (tmp_path / "recorded").read_bytes() == b"Zaaaend\n"
    assert replayed.returncode == tool.ENDS_EARLY
    assert "the recording ends here" in replayed.stderr


def test_the_debugger_shows_what_c_code_printed(tmp_path: Path) -> None:
    recording = tmp_path / "recording.rdbg"
    source = FIXTURES / "streams" / "printed_in_c.py"
    _shell(tmp_path, tool.record(sys.executable, recording, [str(source)]), "> recorded 2>&1")

    shown = subprocess.run(
        [sys.executable, "-m", "replaydbg", "debug", "--batch", "-q", "-c", "output", str(recording)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )

    for text in ("one", "written", "printed: 42", "to a copy: text", "three"):
        assert text in shown.stdout, shown


@pytest.mark.parametrize(
    ("act", "count"),
    [
        ("if os.fork() == 0: os._exit(0)\nos.wait()", 1),
        ("subprocess.run(['true']); os.system('true')", 2),
        ("subprocess.run('true', shell=True, close_fds=False)", 1),
        ("subprocess.run(['true'], capture_output=True)", 0),
        ("subprocess.run(['true'], stdout=-3, stderr=-3)", 0),
        ("subprocess.run(['true'], stdout=-3, stderr=-3, close_fds=False)", 0),
    ],
)
def test_children_that_inherit_the_streams_are_named(tmp_path: Path, act: str, count: int) -> None:
    recording = tmp_path / "recording.rdbg"
    source = tmp_path / "program.py"
    source.write_text(f"import os, subprocess\nprint('one', flush=True)\n{act}\nprint('two')\n")

    recorded = subprocess.run(
        [sys.executable, "-m", "replaydbg", "record", "--json", "--children=none", "-o", str(recording), str(source)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    replayed = subprocess.run(
        [sys.executable, "-m", "replaydbg", "replay", str(recording)], capture_output=True, text=True, timeout=TIMEOUT
    )

    assert recorded.returncode == 0, recorded
    said = [line for line in replayed.stderr.splitlines() if "inherited standard output" in line]
    assert len(said) == (count > 0)
    assert all(f"{count} child process" in line for line in said)


def test_children_that_wrote_nothing_into_the_output_file_are_not_named(tmp_path: Path) -> None:
    recording = tmp_path / "recording.rdbg"
    source = tmp_path / "program.py"
    source.write_text("import os\nprint('one', flush=True)\nos.system('true')\nprint('two')\n")

    _shell(tmp_path, tool.record(sys.executable, recording, [str(source)]), "> recorded 2>&1")
    replayed = subprocess.run(
        [sys.executable, "-m", "replaydbg", "replay", str(recording)], capture_output=True, text=True, timeout=TIMEOUT
    )

    assert replayed.stderr == ""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("signal.raise_signal(signal.SIGTERM)", -15),
        ("os.abort()", -6),
        ("os._exit(3)", 3),
        ("os.system(f'kill -9 {os.getpid()}')", 6),
        ("os.execv('/bin/true', ['true'])", 6),
    ],
)
def test_the_exit_code_says_whether_the_whole_run_was_replayed(tmp_path: Path, end: str, status: int) -> None:
    recording = tmp_path / "recording.rdbg"
    source = tmp_path / "program.py"
    source.write_text(f"import os, signal\nprint('one', flush=True)\n{end}\nprint('never')\n")
    subprocess.run(tool.record(sys.executable, recording, [str(source)]), capture_output=True, timeout=TIMEOUT)

    replayed = subprocess.run(tool.replay(sys.executable, recording), capture_output=True, text=True, timeout=TIMEOUT)
    told = subprocess.run(
        [sys.executable, "-m", "replaydbg", "replay", "--json", str(recording)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )

    assert (replayed.returncode, replayed.stdout) == (128 - status if status == -6 else status, "one\n")
    assert json.loads(told.stdout)["is_whole"] == (status != tool.ENDS_EARLY)


def _shell(where: Path, command: list[str], redirections: str, before: str = ":") -> None:
    done = subprocess.run(
        ["sh", "-c", f'{{ {before}; "$@"; }} {redirections}', "sh", *command],
        cwd=where,
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0


def _at_terminal(command: list[str]) -> str:
    """Return what the command writes to a terminal that is its only stream."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    written = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        written += data
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, written
    return written.decode().replace("\r\n", "\n")


def test_tracebacks_at_a_signal_are_named_as_missing(tmp_path: Path) -> None:
    recording = tmp_path / "recording.rdbg"
    program = tmp_path / "program.py"
    program.write_text(
        "import faulthandler, os, signal\n"
        "faulthandler.register(signal.SIGUSR1)\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "print('end')\n"
    )

    recorded = subprocess.run(
        tool.record(sys.executable, recording, [str(program)]), capture_output=True, text=True, timeout=TIMEOUT
    )
    replayed = subprocess.run(tool.replay(sys.executable, recording), capture_output=True, text=True, timeout=TIMEOUT)

    with open_recording(recording) as opened:
        assert opened.end is not None
        assert ("uncovered", "faulthandler.register") in [(note.kind, note.text) for note in opened.end.notes]
    assert "most recent call first" in recorded.stderr
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout)
