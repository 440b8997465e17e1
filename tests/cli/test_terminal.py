"""Programs that talk to a terminal: input() reads the line in C there, and streams are buffered by lines."""

import os
import pty
import select
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

_ASKS = """
import sys
name = input("name? ")
print("hello", name, sys.stdin.isatty(), sys.stdout.isatty())
try:
    input("more? ")
except EOFError:
    print("no more")
"""


def test_input_at_a_terminal_replays_without_one(tmp_path: Path) -> None:
    program, recording = tmp_path / "asks.py", tmp_path / "r.rdbg"
    program.write_text(_ASKS)
    ours, its = pty.openpty()
    command = tool.record(sys.executable, recording, [str(program)])

    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its)
    os.close(its)
    try:
        shown = _read_until(ours, b"name? ")
        os.write(ours, b"Ada\n")
        shown += _read_until(ours, b"more? ")
        os.write(ours, b"\x04")
        shown += _read_until(ours, b"no more\r\n")
        status = process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    program.unlink()
    replayed = subprocess.run(
        tool.replay(sys.executable, recording), stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
    )

    assert status == 0
    assert b"hello Ada True True" in shown
    assert replayed.returncode == 0
    assert replayed.stdout == b"hello Ada True True\nno more\n"
    # The interpreter writes its prompt to stderr. The terminal itself echoed the input; the replay does it instead.
    assert replayed.stderr == b"name? Ada\nmore? \n"


def _read_until(fd: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        ready, _, _ = select.select([fd], [], [], 30)
        assert ready, f"nothing more came after {seen!r}"
        try:
            piece = os.read(fd, 1000)
        except OSError as error:
            raise AssertionError(f"the terminal was closed after {seen!r}") from error
        seen += piece
    return seen


_EDITS = """
import code
import os
import readline

asked = []


def complete(text, state):
    asked.append((text, state, readline.get_line_buffer(), readline.get_begidx(), readline.get_endidx()))
    words = [word for word in ("alpha", "beta", "best") if word.startswith(text)]
    return words[state] if state < len(words) else None


def history():
    return [readline.get_history_item(i) for i in range(1, readline.get_current_history_length() + 1)]


readline.set_completer(complete)
readline.parse_and_bind("tab: complete")
readline.read_history_file("history")
readline.set_pre_input_hook(lambda: (readline.insert_text("pre "), readline.redisplay()))
print("got", input("one? "), readline.get_completer() is complete)
readline.set_pre_input_hook(None)
print("got", input("two? "), os.urandom(4).hex())
try:
    input("three? ")
except KeyboardInterrupt:
    print("interrupted")
print(asked, history())
readline.write_history_file("written")
x = 5
breakpoint()
print("x is", x)
try:
    input("four? ")
except EOFError:
    print("no more")
code.interact("hello", local={}, exitmsg="bye")
print(history())
"""
_TYPED = [
    ("one? pre ", b"a\t\r"),
    ("two? ", b"be\t\tx\r"),
    ("three? ", b"\x03"),
    ("(Pdb) ", b"p x\r"),
    ("(Pdb) ", b"n\r"),
    ("(Pdb) ", b"x = 7\r"),
    ("(Pdb) ", b"c\r"),
    ("four? ", b"\x04"),
    (">>> ", b"1 + 1\r"),
    (">>> ", b"\x04"),
]


def test_lines_edited_at_a_terminal_replay_without_one(tmp_path: Path) -> None:
    """With completion, history, hooks, Ctrl-C, pdb and an interactive console."""
    pytest.importorskip("readline", reason="this interpreter was built without readline")
    program, recording = tmp_path / "edits.py", tmp_path / "r.rdbg"
    program.write_text(_EDITS)
    (tmp_path / "history").write_text("an old line\nan older one\n")

    shown, status = _type(tool.record(sys.executable, recording, ["-u", str(program)]), _TYPED, tmp_path)
    (tmp_path / "history").unlink()
    (tmp_path / "written").unlink()
    replayed = subprocess.run(
        tool.replay(sys.executable, recording), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    again, status_again = _type(tool.replay(sys.executable, recording), [], tmp_path)

    assert (status, status_again) == (0, 0), shown + again
    assert replayed.returncode == 0, replayed.stderr
    assert not (tmp_path / "written").exists()
    printed = [
        line for line in shown.splitlines() if line.startswith((b"got", b"[(", b"x is", b"[", b"interrupted", b"2"))
    ]
    assert len(printed) >= 6
    for line in printed:
        assert line in replayed.stdout.splitlines()
        assert line in again.splitlines()
    assert b"'an old line', 'an older one', 'pre alpha', 'bex'" in replayed.stdout


def test_a_replay_leaves_its_terminal_as_it_is(tmp_path: Path) -> None:
    program, recording = tmp_path / "edits.py", tmp_path / "r.rdbg"
    program.write_text("import readline, rlcompleter\nprint('hi', input('again? '))\n")
    _, status = _type(tool.record(sys.executable, recording, [str(program)]), [("again? ", b"yes\r")], tmp_path)
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)

    replayed = subprocess.run(
        tool.replay(sys.executable, recording), stdin=its, capture_output=True, timeout=60, check=False
    )
    after = termios.tcgetattr(its)
    os.close(ours)
    os.close(its)

    assert (status, replayed.returncode, replayed.stdout) == (0, 0, b"again? yes\nhi yes\n")
    assert before == after


def test_a_recording_made_at_a_terminal_is_debugged_as_it_ran(tmp_path: Path) -> None:
    """A debugger's process is a terminal's program, too, for as long as it starts."""
    program, recording = FIXTURES / "streams" / "prints_between_calls.py", tmp_path / "r.rdbg"

    shown, status = _type(tool.record(sys.executable, recording, [str(program)]), [], tmp_path)

    assert (status, b"one True" in shown) == (0, True)
    with Session(recording) as session:
        assert (session.has_diverged, session.index.ended) == (False, "the program ended")


def _type(command: list[str], typed: list[tuple[str, bytes]], home: Path) -> tuple[bytes, int]:
    """Run `command` in a new terminal; after each text, type its keys. Return output and exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        env = without_steering(os.environ) | {"TERM": "xterm", "HOME": str(home), "INPUTRC": "/dev/null"}
        os.chdir(home)
        os.execve(command[0], command, env)
    shown = b""
    try:
        for after, keys in typed:
            shown += _read_until(fd, after.encode())
            _wait_until_all_sleep(pid)
            os.write(fd, keys)
        shown += _read_to_end(fd)
    finally:
        os.close(fd)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return shown, status


def _wait_until_all_sleep(session: int) -> None:
    """Wait until the program waits for keys: a Ctrl-C between its prompt and the wait shows only at the next key."""
    looks = [False]

    def sleeps_again() -> bool:
        states = {state for state, of in map(_state_and_session, Path("/proc").glob("[0-9]*/stat")) if of == session}
        looks.append(states <= {"S", "Z"})
        return all(looks[-2:])

    wait_until(sleeps_again, message=lambda: "it never waited for a key")


def _state_and_session(path: Path) -> tuple[str, int]:
    try:
        fields = path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[3])


def _read_to_end(fd: int) -> bytes:
    seen = b""
    while True:
        ready, _, _ = select.select([fd], [], [], 30)
        assert ready, f"nothing more came after {seen!r}"
        try:
            seen += os.read(fd, 1000)
        except OSError:
            return seen
