"""A monkey at the keyboard breaks nothing: a short form of `python -m tests.monkey`, which finds what it looks for."""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests.harness.pseudo_terminal import PseudoTerminal, plain_text
from tests.harness.waiting import PATIENCE
from tests.monkey import visit as visits
from tests.monkey.__main__ import main
from tests.monkey.actions import Monkey
from tests.monkey.memory import ALWAYS, FEWEST, growth, resident
from tests.monkey.recordings import RECORDINGS
from tests.monkey.visit import MonkeyFound, visit

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("TEST_MONKEY", "6"))
PLAYER = "import sys; from pathlib import Path; from tests.monkey.player import report_accidents\n"


@pytest.mark.timeout(300)
def test_random_keys_sizes_and_clicks_break_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seed = os.environ.get("TEST_SEED", str(int.from_bytes(os.urandom(3), "big")))

    code = main(["--seconds", str(SECONDS), "--seed", seed, "--keep", str(tmp_path), "--only", "race"])

    shown = capfd.readouterr()
    assert f"seed {seed}" in shown.out
    assert code == 0, shown.err


def test_a_seed_is_a_sequence_of_actions() -> None:
    one, same, other = (list(islice(Monkey(seed).actions(), 500)) for seed in ("1", "1", "2"))

    assert one == same != other
    assert {each.size for each in one if not each.data}


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([100] * FEWEST, False),
        ([*range(FEWEST), *[FEWEST] * 2 * FEWEST], False),  # only the warm-up grows
        ([*range(100, 100 + 10 * FEWEST, 10)], True),
        ([*range(100, 100 + 10 * (FEWEST - 1), 10)], False),  # too few
        ([100, 103] * FEWEST, False),
    ],
)
def test_memory_that_grows_after_the_warm_up(samples: list[int], expected: bool) -> None:
    assert bool(growth([each * ALWAYS // 4 for each in samples])) is expected
    assert resident(os.getpid()) > 1 << 20


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a visit open an app that does something wrong: `broken.py` in the directory of the player."""
    script = tmp_path / "broken.py"
    open_terminal = PseudoTerminal

    def opened(command: list[str], **more: object) -> PseudoTerminal:
        return open_terminal([sys.executable, str(script), *command[3:]], **more)  # type: ignore[arg-type]

    monkeypatch.setattr(visits, "PseudoTerminal", opened)
    return script


WRONG = {
    "raises": ("app.action_panel = lambda self, number: 1 / 0", "ended with 1"),
    "trouble": ("app.action_panel = lambda self, number: self.ask(lambda host: 1 / 0)", "ZeroDivisionError"),
    "dead": ("import time; app.action_panel = lambda self, number: time.sleep(1000)", "the screen is dead"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.timeout(300)
def test_what_is_wrong_is_found(what: str, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, expected = WRONG[what]
    monkeypatch.setattr(visits, "PATIENCE", 20.0)
    broken.write_text(
        f"{PLAYER}from replaydbg.tui.apps.replay_app import ReplayApp as app\n"
        f"from replaydbg.cli.main import main\nreport_accidents(Path(sys.argv[1]))\n{change}\n"
        "sys.exit(main(['tui', *sys.argv[2:]]))\n"
    )

    with pytest.raises(MonkeyFound, match=expected):
        visit("5", "failure", RECORDINGS["failure"](tmp_path), PATIENCE, tmp_path)


def test_output_without_escapes() -> None:
    assert plain_text(b"\x1b[1;31mevent\x1b[0m 3\x1b]0;title\x07 / 4\x1b[?2026h") == "event 3 / 4"


def test_a_program_gets_keys_and_sizes_of_its_terminal(tmp_path: Path) -> None:
    # Not by print: the signal may come while it prints.
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGWINCH, lambda *_: os.write(1, str(os.get_terminal_size()).encode()))\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin: print(line.upper())"
    )
    terminal = PseudoTerminal([sys.executable, "-c", code], cwd=tmp_path, environ=os.environ)
    try:
        assert terminal.wait_for(lambda seen: b"ready" in seen, PATIENCE)
        terminal.resize(77, 22)
        assert terminal.wait_for(lambda seen: b"columns=77, lines=22" in seen, PATIENCE)
        terminal.send(b"key\r")
        assert terminal.wait_for(lambda seen: b"KEY" in seen, PATIENCE)
    finally:
        assert terminal.close() != 0
