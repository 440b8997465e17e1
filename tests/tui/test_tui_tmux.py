"""The installed program in a real terminal: keys are sent through tmux, and the screen is read back."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.recording import record_failure
from tests.harness.surroundings import without_steering
from tests.harness.waiting import PATIENCE, wait_until

TMUX = shutil.which("tmux")
pytestmark = [
    pytest.mark.skipif(TMUX is None, reason="tmux is not installed (Debian's package is named tmux)"),
    pytest.mark.slow,
]
TILL = Path(__file__).parents[2] / "fixtures" / "races" / "till.py"


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, folder: Path, *, size: tuple[int, int] = (120, 36)) -> None:
        assert TMUX is not None
        self._tmux = [TMUX, "-L", f"replaydbg-{uuid.uuid4().hex[:12]}", "-f", os.devnull]
        width, height = size
        environment = without_steering(os.environ) | {"LC_ALL": "C.UTF-8", "TERM": "screen-256color", "PS1": "ready$ "}
        environment.pop("TMUX", None)
        command = ["new-session", "-d", "-x", str(width), "-y", str(height), "bash --norc --noprofile"]
        subprocess.run([*self._tmux, *command], cwd=folder, env=environment, check=True, timeout=PATIENCE)

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        subprocess.run([*self._tmux, "send-keys", "--", *keys], check=True, timeout=PATIENCE)

    def type(self, text: str) -> None:
        """Type a line."""
        subprocess.run([*self._tmux, "send-keys", "-l", "--", text], check=True, timeout=PATIENCE)
        self.keys("Enter")

    @property
    def text(self) -> str:
        """Return the text on the screen."""
        command = [*self._tmux, "capture-pane", "-p"]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    def until(self, *texts: str, is_so: Callable[[str], bool] = lambda text: True) -> str:
        """Wait until all of `texts` are on the screen; return it."""

        def shown() -> str:
            text = self.text
            return text if all(each in text for each in texts) and is_so(text) else ""

        return wait_until(shown, message=lambda: f"{texts} did not come:\n{self.text}")

    def close(self) -> None:
        """Close it, and end all its processes."""
        subprocess.run([*self._tmux, "kill-server"], check=False, timeout=PATIENCE)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


SAYS = "echo code=$?; stty -a | grep -o -e '[-]*icanon' -e ' [-]*echo '"
"""Makes the shell print the state of the terminal."""


def tui(*words: object) -> str:
    """Run the command; afterwards the shell prints the state of the terminal."""
    return f"{shlex.join([sys.executable, '-m', 'replaydbg', 'tui', *map(str, words)])}; {SAYS}"


def is_sane(text: str) -> bool:
    """Return whether the shell has its terminal back."""
    words = text.rpartition("code=")[2].split()
    return "icanon" in words and "echo" in words and "-icanon" not in words and "-echo" not in words


@pytest.fixture(scope="module")
def failure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record threads that lose a payment, with a snapshot before and one after."""
    return record_failure(TILL, tmp_path_factory.mktemp("tmux"))


def test_a_line_that_comes_in_one_piece(terminal: Terminal, failure: Path) -> None:
    terminal.type(tui(failure))
    terminal.until("ValueError", "cents are missing", "1 Source", "5 Timeline")

    terminal.type(":when")

    terminal.until("(rdbg) when", "rdbg://")


def test_a_failure_is_looked_at_with_real_keys(terminal: Terminal, failure: Path) -> None:
    terminal.type(tui(failure))
    terminal.until("ValueError", "cents are missing", "1 Source", "5 Timeline")

    terminal.keys("N")
    assert "What happened" not in terminal.until("▶39")
    terminal.keys("D")
    terminal.until("snapshot #1 opened")
    terminal.keys("Enter")
    terminal.until("till.cents", "0 -> ")
    terminal.keys("x")
    terminal.until("The run is bad when")
    terminal.keys("Enter")
    terminal.until("bisect: an expression is true:")
    terminal.type("len(till.seen) != len(set(till.seen))")
    terminal.until("first true after", "Enter goes there")
    terminal.keys("Enter")
    terminal.until("▶20", "self.seen.append(before)")
    terminal.keys("q")

    terminal.until("code=0", is_so=is_sane)


def test_the_terminal_is_given_back_when_it_is_told_to_end(terminal: Terminal, failure: Path) -> None:
    terminal.type(tui(failure))
    terminal.until("1 Source", "40")
    # Its command line ends in the recording's path, which no other has.
    mine = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and is_of(each, failure)]

    os.kill(min(mine), signal.SIGTERM)

    terminal.until("code=143", is_so=is_sane)


def is_of(process: Path, recording: Path) -> bool:
    """Return whether it is the terminal UI of a recording."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[-2:-1] == [os.fsencode(recording)] and b"tui" in words


def test_the_terminal_is_given_back_after_a_crash(terminal: Terminal, failure: Path, tmp_path: Path) -> None:
    script = tmp_path / "crashes.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom replaydbg.tui.apps.replay_app import ReplayApp\n"
        "class Crashes(ReplayApp):\n"
        "    def action_copy_moment(self):\n        raise ZeroDivisionError('a bug of ours')\n"
        "Crashes(Path(sys.argv[1])).run()\n"
    )
    terminal.type(f"{shlex.join([sys.executable, str(script), str(failure)])}; {SAYS}")
    terminal.until("1 Source", "40")

    terminal.keys("y")

    terminal.until("ZeroDivisionError", is_so=is_sane)


@pytest.mark.parametrize("asked", [["LC_ALL=C"], ["LANG=C", "--ascii"]])
def test_it_works_without_colours_and_unicode(terminal: Terminal, failure: Path, asked: list[str]) -> None:
    terminal.type(f"export NO_COLOR=1 {asked[0]}; {tui(*asked[1:], failure)}")
    terminal.until("ValueError", "+- 1 Source", ">40")

    terminal.keys("q")

    terminal.until("code=0", is_so=is_sane)


def test_a_bare_recording_is_opened(terminal: Terminal, failure: Path) -> None:
    terminal.type(f"{shlex.join([sys.executable, '-m', 'replaydbg', str(failure)])}; {SAYS}")
    terminal.until("ValueError", "1 Source", "40")

    terminal.keys("q")

    terminal.until("code=0", is_so=is_sane)


def test_a_recording_is_chosen_where_none_is_named(tmp_path: Path, failure: Path) -> None:
    shutil.copy(failure, tmp_path / "this.rdbg")
    shutil.copy(failure, tmp_path / "that.rdbg")
    terminal = Terminal(tmp_path)
    try:
        terminal.type(f"export REPLAYDBG_STORE={shlex.quote(str(tmp_path / 'store'))}; {tui()}")
        terminal.until("Recordings", "this.rdbg", "that.rdbg", "till.py")

        terminal.keys("Down")
        terminal.keys("Enter")
        terminal.until("ValueError", "1 Source", "40")
        terminal.keys("q")

        terminal.until("code=0", is_so=is_sane)
    finally:
        terminal.close()


def test_it_says_that_it_needs_a_terminal(failure: Path) -> None:
    command = [sys.executable, "-m", "replaydbg", "tui", str(failure)]

    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
