"""The walk through the code names functions that exist, and few enough of them to be read."""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
MOST_STOPS = 12

_STOP = re.compile(r"^\d+\. `([\w.]+)`", re.M)


def walks() -> dict[str, list[str]]:
    """The stops of each walk, by its heading."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0]: _STOP.findall(part) for part in parts}


def stops() -> list[str]:
    """All stops, in the order of the page."""
    return [stop for walk in walks().values() for stop in walk]


@functools.cache
def c_sources() -> str:
    """The sources of the core, wherever below `native` they are."""
    paths = sorted((ROOT / "replaydbg" / "native").rglob("*.c"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def is_defined_in_c(name: str) -> bool:
    """Whether a C function of that name has a body; a declaration or a call is not enough."""
    return re.search(rf"^(?:[\w*][\w *]*)?\b{name}\([^;{{}}]*\)\s*{{", c_sources(), re.M) is not None


def found_in_python(name: str) -> object:
    """The function or method of that name: its module is the longest part that can be imported."""
    parts = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:at]))
        except ModuleNotFoundError:
            continue
        found: object = module
        for each in parts[at:]:
            found = getattr(found, each, None)
        return found
    return None


def test_there_are_three_walks_of_at_most_twelve_stops() -> None:
    lengths = [len(stops) for stops in walks().values()]

    assert len(lengths) == 3
    assert all(2 < length <= MOST_STOPS for length in lengths), lengths


def test_each_item_of_a_list_is_a_stop() -> None:
    items = re.findall(r"^\d+\. .*$", PAGE.read_text(encoding="utf-8"), re.M)

    assert len(items) == len(stops())


@pytest.mark.parametrize("stop", stops())
def test_stop_exists(stop: str) -> None:
    if stop.startswith("native."):
        assert is_defined_in_c(stop.removeprefix("native."))
    else:
        assert callable(found_in_python(stop)), f"{stop} is not a function"


def test_a_function_that_is_only_called_is_not_taken_for_defined() -> None:
    assert not is_defined_in_c("posix_fallocate")
