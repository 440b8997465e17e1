"""The sentences that messages.md quotes for a refused resumption are those that the code prints."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.test_docs import ROOT

_FILLED = "\0"
"""Stands for what is filled in: of an f-string, or of a format of C."""
_LONGEST_FILLING = 40
_C_STRINGS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
_PLACES = ("resume", "recovery", "cli/running", "log")


def _quoted() -> list[str]:
    text = (ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
    section = text.partition("\n## cannot-resume\n")[2].partition("\n## ")[0]
    items = " ".join(line.strip() for line in section.splitlines()[1:])
    return [re.sub(r"`(.*?)`", r"`\1`", each) for each in re.findall(r"(?<![*\w])\*([^*]+)\*(?![*\w])", items)]


def _printed() -> Iterator[str]:
    for place in _PLACES:
        for path in sorted((ROOT / "replaydbg" / place).rglob("*.py")):
            yield from _texts(path)
    for path in sorted((ROOT / "replaydbg" / "native").rglob("*.c")):
        for match in _C_STRINGS.finditer(path.read_text(encoding="utf-8")):
            parts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', match[0])
            yield re.sub(r"%[a-z.*0-9]+", _FILLED, "".join(parts))


def _texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else _FILLED for each in node.values)


def _can_print(printed: str, quoted: str) -> bool:
    """Whether `quoted` can be a part of `printed` with something filled in; half of it must be printed as it is."""
    # For each place in `printed` that is reached: the most characters of `quoted` that were printed as they are, and
    # how many were filled in since.
    reached = {index: (0, 0) for index in range(len(printed)) if printed[index] != _FILLED}
    for character in quoted:
        following: dict[int, tuple[int, int]] = {}
        for index, (literal, filling) in reached.items():
            if index >= len(printed):
                continue
            steps = []
            if printed[index] == character:
                steps = [(index + 1, literal + 1, 0)]
            elif printed[index] == _FILLED and filling < _LONGEST_FILLING:
                steps = [(index, literal, filling + 1), (index + 1, literal, 0)]
            for place, count, filled in steps:
                following[place] = max(following.get(place, (-1, 0)), (count, filled))
        reached = following
    return any(2 * literal > len(quoted) for literal, _ in reached.values())


@pytest.fixture(scope="module")
def printed() -> list[str]:
    return list(dict.fromkeys(_printed()))


@pytest.mark.parametrize("quoted", _quoted())
def test_what_messages_quotes_is_printed(quoted: str, printed: list[str]) -> None:
    sentence = re.sub(r"^Cannot resume '[^']+': ", "", quoted)
    for part in filter(None, (each.strip(" .:") for each in re.split(r"\.\.\.|: ", sentence))):
        assert any(_can_print(each, part) for each in printed), part


def test_the_search_finds_what_is_filled_in() -> None:
    assert _can_print(f"its program is still running (process {_FILLED})", "its program is still running (process 7)")
    assert not _can_print("its program is still running", "its program still runs")
    assert not _can_print(f"it {_FILLED}", "it has open what cannot be brought back")
