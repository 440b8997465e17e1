"""Output of the interpreter itself is printed once while recording, where possible, and named where it differs."""

import os
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.sanitizer import runtime

pytestmark = pytest.mark.slow

_LOCALE_WARNING = "Python runtime initialized with LC_CTYPE=C"
_STATISTICS = "# arenas allocated total"


def _run(*words: str, cwd: Path, **variables: str) -> Outcome:
    env = {**passed_on(), **runtime(), "PATH": os.defpath, "HOME": str(cwd), "LANG": "C.UTF-8", **variables}
    return run([sys.executable, *words], cwd=cwd, env=env)


def _record(code: str, cwd: Path, **variables: str) -> tuple[Outcome, list[str]]:
    """Record; return the outcome and what the recording does not cover."""
    recorded = _run("-m", "replaydbg", "record", "-o", "r.rdbg", "-c", code, cwd=cwd, **variables)
    with open_recording(cwd / "r.rdbg") as recording:
        assert recording.end is not None
        return recorded, [note.text for note in recording.end.notes if note.kind == "uncovered"]


def test_a_warning_about_the_locale_is_printed_once_and_named(tmp_path: Path) -> None:
    variables = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "warn"}
    code = "import os; print(os.environ['PYTHONCOERCECLOCALE'], list(os.environ))"

    plain = _run("-c", code, cwd=tmp_path, **variables)
    recorded, notes = _record(code, tmp_path, **variables)
    replayed = _run("-m", "replaydbg", "replay", "r.rdbg", cwd=tmp_path)

    assert recorded.stdout == plain.stdout == replayed.stdout
    assert [each.stderr.count(_LOCALE_WARNING) for each in (plain, recorded, replayed)] == [1, 1, 0]
    assert notes == ["PYTHONCOERCECLOCALE=warn: a replay does not print the warning about the locale"]
    assert f"uncovered: {notes[0]}" in recorded.stderr
    assert f"not covered by the recording: {notes[0]}" in replayed.stderr


def test_no_warning_about_the_locale_is_not_named(tmp_path: Path) -> None:
    assert _record("", tmp_path, PYTHONCOERCECLOCALE="warn")[1] == []


def test_statistics_of_the_allocator_are_named(tmp_path: Path) -> None:
    recorded, notes = _record("print(1)", tmp_path, PYTHONMALLOCSTATS="1")
    replayed = _run("-m", "replaydbg", "replay", "r.rdbg", cwd=tmp_path)

    assert _STATISTICS in recorded.stderr
    assert [each.partition(":")[0] for each in notes] == ["PYTHONMALLOCSTATS"]
    assert f"not covered by the recording: {notes[0]}" in replayed.stderr


@pytest.mark.parametrize("name", ["PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME"])
def test_our_own_imports_are_not_printed(name: str, tmp_path: Path) -> None:
    """Apart from those at the start of the interpreter, before any code of ours runs."""
    option = {"PYTHONVERBOSE": "-v", "PYTHONPROFILEIMPORTTIME": "-X importtime"}[name]

    recorded, notes = _record("print(1)", tmp_path, **{name: "1"})

    assert recorded.stdout == "1\n"
    assert "replaydbg.record.launcher" not in recorded.stderr
    assert [each.partition(":")[0] for each in notes] == [option]


def test_interactive_mode_is_refused_and_not_entered(tmp_path: Path) -> None:
    refused = _run("-m", "replaydbg", "record", "-c", "print(1)", cwd=tmp_path, PYTHONINSPECT="1")

    assert (refused.status, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "PYTHONINSPECT" in refused.stderr


@pytest.mark.parametrize(
    ("flags", "is_noted"),
    [("gc.DEBUG_STATS", True), ("gc.DEBUG_LEAK", True), ("gc.DEBUG_SAVEALL", False), ("0", False)],
)
def test_a_collector_that_prints_is_named(flags: str, is_noted: bool, tmp_path: Path) -> None:
    recorded, notes = _record(f"import gc; gc.set_debug({flags}); gc.set_debug(0)", tmp_path)

    assert recorded.status == 0, recorded.stderr
    assert [each.startswith("gc.set_debug:") for each in notes] == [True] * is_noted


def test_wrong_arguments_of_the_collector_raise_as_they_do_without(tmp_path: Path) -> None:
    code = (
        "import gc\n"
        "for each in ((), ('x',), (1 << 80,), (1, 2)):\n"
        "    try: gc.set_debug(*each)\n"
        "    except Exception as e: print(repr(e))"
    )

    plain = _run("-c", code, cwd=tmp_path)

    assert _record(code, tmp_path)[0].stdout == plain.stdout
