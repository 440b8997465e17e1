"""The animated picture of the README shows a session that can still be had, needs no scripts, and is small."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from tests.pages.animation import PICTURE, ROWS, draw, record, shown_lines
from tests.pages.comparison import compared, joined, kinds

VARIES = r"positions, events, sizes, times, percentages, /\b(?:ann|bob|cem|dee|eve)\b(?! *\/)/, /^ +[~^]+$/"
LARGEST = 300 * 1024


@pytest.fixture(scope="module")
def picture() -> str:
    return PICTURE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_still_print_what_it_shows(picture: str) -> None:
    """Otherwise write it again: `python -m tests.pages.animation`."""
    printed = joined(shown_lines(draw(record())))

    found = compared(joined(shown_lines(picture)), printed, kinds(VARIES))

    assert isinstance(found, dict), found


def test_it_is_small_and_has_no_scripts(picture: str) -> None:
    names = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(picture).iter()}

    assert names == {"svg", "title", "style", "rect", "circle", "g", "text", "tspan"}
    assert len(picture.encode()) <= LARGEST
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_it_follows_the_reader(picture: str) -> None:
    for wish in ("prefers-color-scheme:light", "prefers-reduced-motion:reduce"):
        assert f"@media ({wish})" in picture


def test_every_part_appears_in_order_and_the_last_line_is_seen(picture: str) -> None:
    times = [float(each) for each in re.findall(r"@keyframes s\d+\{0%\{opacity:0\}([\d.]+)%", picture)]
    last = max(int(each) for each in re.findall(r'<text y="(\d+)', picture))
    moved = int(re.findall(r"translateY\(-(\d+)px\)", picture)[-1])

    assert times == sorted(times)
    assert len(times) == len(re.findall(r'<g class="s s\d+">', picture))
    assert 0 < last - moved < ROWS * 19
