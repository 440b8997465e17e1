"""The main states of the terminal UI are unchanged, at three sizes and in two themes; the pictures are current.

`python -m tests.harness.screens` redraws them.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.harness.recorded_group import BANK, record_program
from tests.harness.sanitizer import IS_SANITIZED
from tests.harness.screens import (
    GROUP_STATES,
    PICTURES,
    SHOWN,
    SIZES,
    STATES,
    THEMES,
    draw,
    normal,
    record,
    screen_path,
)

DRAWN_WITH = "8.2.8"
"""The version of Textual that drew them: another one may draw borders and colours differently."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(version("textual") != DRAWN_WITH, reason=f"the screens were drawn by Textual {DRAWN_WITH}"),
    # Which payments are lost depends on how far threads compute in a slice, and that on the interpreter.
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the screens are of a run under Python 3.11"),
]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("screens"))


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_program(tmp_path_factory.mktemp("group"), BANK) / "1.rdbg"


HAS_OTHER_SLICES = pytest.mark.skipif(IS_SANITIZED, reason="threads compute less in a slice: another payment is lost")
ALL = [pytest.param(each, marks=HAS_OTHER_SLICES) if each == "bisected" else each for each in (*STATES, *GROUP_STATES)]


@pytest.mark.parametrize("state", ALL)
def test_screens_are_as_they_were(state: str, recording: Path, group: Path) -> None:
    drawn = draw(group if state in GROUP_STATES else recording, state)

    assert set(drawn) == {(size, theme) for size in SIZES for theme in THEMES}
    for (size, theme), each in drawn.items():
        assert normal(each.svg) == screen_path(state, size, theme).read_text(encoding="utf-8"), (state, size, theme)
        assert not each.faint, (state, size, theme, each.faint)


# The others are plots of measurements (tests/bench/plots.py), the drawing of a cut (tests/harness/cut_picture.py), and
# the animated session (tests/pages/animation.py).
SCREENS = sorted(path for path in PICTURES.glob("*.svg") if not path.name.startswith(("growth-", "cut", "session")))


@pytest.mark.parametrize("picture", SCREENS, ids=lambda each: each.name)
def test_pictures_of_the_documentation_are_current(picture: Path) -> None:
    state, _, theme = picture.stem.rpartition("-")
    svg = picture.read_text(encoding="utf-8")

    assert normal(svg) == screen_path(state, SHOWN, theme).read_text(encoding="utf-8")
    assert "/home/" not in svg and "/tmp/" not in svg and "http" not in svg.replace("http://www.w3.org/2000/svg", "")
