"""Steps that pass over code that is not the user's own. Random walks with them are in test_travel_oracle.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.config import load_settings
from replaydbg.debugger import Session
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.errors import UsageError
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL, Typed

PROGRAM = TRAVEL / "called_by_a_library.py"
CALL, CALLBACK, CALLBACKS_END, BEHIND = 17, 12, 13, 18


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("own")), spacing=0.001) as opened:
        yield opened


def stands(session: Session) -> tuple[str, int]:
    top = session.here.top
    assert top is not None
    return Path(top.file).name, top.line


def at_the_call(session: Session) -> Typed:
    typed = Typed.at("@start", session)
    typed("start", f"advance {PROGRAM.name}:{CALL}")
    return typed


def test_steps_go_into_what_a_library_calls(session: Session) -> None:
    typed = at_the_call(session)

    typed("just-my-code on")

    lines = []
    for _ in range(6):
        typed("step")
        lines.append(stands(session))
    mine = [CALLBACK, CALLBACKS_END, CALLBACK, CALLBACKS_END, BEHIND]
    assert lines[:5] == [(PROGRAM.name, line) for line in mine]
    back = []
    for _ in range(5):
        typed("reverse-step")
        back.append(stands(session))
    assert back == [(PROGRAM.name, line) for line in (BEHIND, *mine[-2::-1])]


def test_without_it_they_go_into_the_library(session: Session) -> None:
    typed = at_the_call(session)

    said = typed("jmc on", "jmc", "step")

    assert "Steps now stop in all code." in said
    assert stands(session)[0] == "__init__.py"


@pytest.mark.parametrize(
    ("word", "line"),
    [("next", CALLBACKS_END), ("finish", BEHIND), ("reverse-next", CALL), ("reverse-finish", CALL)],
)
def test_the_caller_of_a_callback_is_who_called_the_library(word: str, line: int, session: Session) -> None:
    typed = at_the_call(session)
    typed("jmc on", "step")
    assert stands(session) == (PROGRAM.name, CALLBACK)

    typed(word)
    # Where Python code of the library calls it, its second call is the next own line; in 3.13, C code calls it.
    if word == "finish" and stands(session) == (PROGRAM.name, CALLBACK):
        typed(word)

    assert stands(session) == (PROGRAM.name, line)


def test_behind_the_last_own_line_is_the_end(session: Session) -> None:
    typed = Typed.at("@end", session)

    said = typed("jmc on", "step")

    assert stands(session) == (PROGRAM.name, 22)
    assert "end" in said


def test_patterns_say_what_is_own(session: Session) -> None:
    session.seek("@start")
    typed = at_the_call(session)
    typed.prompt.view.own_code = OwnCode(("*/json/*", "!*/json/encoder.py"))

    typed("jmc on", "step")

    assert stands(session)[0] == "__init__.py"
    typed.prompt.view.own_code = OwnCode(("!*/called_by_*",))
    typed("start", "step")
    assert stands(session)[0] != PROGRAM.name or session.here.why == "end"


def test_wrong_words_are_refused(session: Session) -> None:
    assert "usage: just-my-code [on|off] (got 'maybe')" in Typed.at("@end", session)("jmc maybe")


@pytest.mark.parametrize(
    ("file", "is_command", "patterns", "is_own"),
    [
        ("/home/me/prog.py", False, (), True),
        ("/usr/lib/python3.11/json/__init__.py", False, (), False),
        ("/venv/lib/python3.12/site-packages/ours/a.py", False, ("*/ours/*",), True),
        ("/home/me/generated/a.py", False, ("!*/generated/*",), False),
        ("/home/me/generated/a.py", False, ("!*/generated/*", "*/a.py"), True),
        ("<string>", True, (), True),
        ("<string>", False, (), False),
        ("<frozen runpy>", True, (), False),
    ],
)
def test_which_files_are_own(file: str, is_command: bool, patterns: tuple[str, ...], is_own: bool) -> None:
    assert OwnCode(patterns).is_own(file, is_command=is_command) == is_own


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_JUST_MY_CODE", "1")
    monkeypatch.setenv("REPLAYDBG_MY_CODE", "*/ours/*, !*/generated/*")

    settings = load_settings()

    assert (settings.just_my_code, settings.my_code) == (True, ("*/ours/*", "!*/generated/*"))
    monkeypatch.setenv("REPLAYDBG_MY_CODE", ",".join(["a"] * 257))
    with pytest.raises(UsageError, match="at most 256 patterns are possible"):
        load_settings()
