"""A compiled part that was built from older sources is reported in one sentence."""

import sys
from types import ModuleType

import pytest

from replaydbg.errors import NotBuilt
from replaydbg.log.entries.leaves import LeafReader
from replaydbg.native import compiled


def test_a_part_that_is_older_than_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "replaydbg.native._leaves", ModuleType("replaydbg.native._leaves"))

    with pytest.raises(NotBuilt, match="its part _leaves was built from older sources"):
        LeafReader()


def test_a_part_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "replaydbg.native._leaves", None)

    with pytest.raises(ImportError):
        compiled("_leaves", "Walker")
