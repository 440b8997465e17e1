"""Files and functions whose names are not ASCII, or cannot be decoded."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.source.own_code import OwnCode
from tests.harness.recording import record_file
from tests.harness.typed import Typed

SOURCE = """\
import sys

sys.path[0] += "/bücher/lib/python3.11/site-packages"
import fächer


def größe(zahl):
    return zahl + fächer.auf(zahl)


print(größe(3))
print("end")
"""
LIBRARY = """\
def auf(zahl):
    return zahl * 2
"""


def made_in(directory: Path) -> Path:
    """Return a program below a directory."""
    program = directory / "prüfung.py"
    library = directory / "bücher" / "lib" / "python3.11" / "site-packages" / "fächer.py"
    library.parent.mkdir(parents=True)
    program.write_text(SOURCE)
    library.write_text(LIBRARY)
    return program


@pytest.fixture(scope="module", params=["zürich", os.fsdecode(b"caf\xe9"), "東京 😀"], ids=["latin", "bytes", "wide"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    directory = tmp_path_factory.mktemp("named") / request.param
    directory.mkdir()
    with Session(record_file(made_in(directory), tmp_path_factory.mktemp("made"))) as opened:
        yield opened


def line(session: Session) -> tuple[str, int]:
    top = session.here.top
    assert top is not None
    return Path(top.file).name, top.line


@pytest.mark.parametrize("place", ["prüfung.py:8", "größe"])
def test_breakpoints_stop_there(place: str, session: Session) -> None:
    typed = Typed.at("@start", session)

    typed(f"break {place}", "continue")
    assert (line(session), session.here.why) == (("prüfung.py", 8), "breakpoint")

    typed("end", "reverse-continue")
    assert (line(session), session.here.why) == (("prüfung.py", 8), "breakpoint")
    typed("delete")


def test_the_first_line_is_known(session: Session) -> None:
    Typed.at("@end", session)("start")

    assert line(session) == ("prüfung.py", 1)


def test_installed_files_are_not_own(session: Session) -> None:
    typed = Typed.at("@start", session)
    typed("start", "advance prüfung.py:8")

    typed("just-my-code on", "step")
    assert line(session) != ("fächer.py", 2)

    typed("advance prüfung.py:8", "reverse-step")
    typed("start", "advance prüfung.py:8")
    typed.prompt.view.own_code = OwnCode(("*/b?cher/*",))
    typed("step")
    assert line(session) == ("fächer.py", 2)


@pytest.mark.parametrize(
    ("file", "is_own"),
    [
        ("/home/müller/prog.py", True),
        ("/home/müller/lib/python3.11/site-packages/a.py", False),
        ("/usr/lib/python3/dist-packages/deb.py", False),
        ("/usr/lib64/python3.11/json/__init__.py", False),
    ],
)
def test_the_rule_holds_for_all_names(file: str, is_own: bool) -> None:
    assert OwnCode().is_own(file, is_command=False) == is_own
