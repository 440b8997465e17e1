"""Questions of a cell: an expression needs no quotes, a cell has its number, and answers are limited."""

import sys
import time
from types import SimpleNamespace

import pytest

from replaydbg.jupyter import notebook


def cells() -> notebook.Cells:
    history = SimpleNamespace(input_hist_raw=["", "a = 1", "b = 2"], input_hist_parsed=["", "a = 1\n", "b = 2\n"])
    compiler = SimpleNamespace(get_code_name=lambda raw, parsed, number: f"/tmp/{number}.py")
    return notebook.Cells(SimpleNamespace(history_manager=history, compile=compiler, execution_count=3))


@pytest.mark.parametrize(
    ("question", "line", "words"),
    [
        ("why", "total", ["total"]),
        ("why", "df['a b'] + 1 --at cell 2", ["df['a b'] + 1", "--at", "@cell:2"]),
        ("log", "cell 2:5 x + 1 --if 'x > 2'", ["/tmp/2.py:5", "x + 1", "--if", "x > 2"]),
        ("log", "cell 1 'x'", ["/tmp/1.py:1", "x"]),
        ("seek", "cell 1", ["@cell:1"]),
        ("diff", "cell 1 cell 2 --json", ["@cell:1", "@cell:2", "--json"]),
        ("info", "", []),
    ],
)
def test_words_of_a_question(question: str, line: str, words: list[str]) -> None:
    assert cells()._arguments(question, line) == words


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("log cell 9:1 x", "replaydbg: there is no cell 9: the last one is 2\n"),
        ("seek cell 0", "replaydbg: there is no cell 0: the last one is 2\n"),
        ("why 'it", "replaydbg: a quotation mark is missing in: 'it\n"),
    ],
)
def test_a_question_that_cannot_be_read_is_not_asked(
    line: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = cells()
    kernel._recording = "run-1"

    kernel.ask(line)

    assert capsys.readouterr().out == printed


def test_a_kernel_that_is_not_recorded_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    cells().ask("why total")

    assert capsys.readouterr().out.startswith("This kernel is not recorded")


def test_an_answer_is_cut_off() -> None:
    text = notebook.answer([sys.executable, "-c", f"print('x' * {notebook.MOST_BYTES * 3})"])

    assert len(text) < notebook.MOST_BYTES + 100
    assert text.endswith("(cut off after 50,000 bytes)\n")


def test_an_answer_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "SECONDS", 0.5)
    begin = time.monotonic()

    text = notebook.answer([sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(60)"])

    assert text.endswith("(given up after 0 s)\n")
    assert time.monotonic() - begin < 30
