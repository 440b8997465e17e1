"""Every frame of a deep stack can be selected and inspected, and the number of frames is shown."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replaydbg.debugger import Session
from tests.harness.process import run
from tests.harness.recording import record_file
from tests.harness.seen import Seen, see
from tests.harness.typed import TRAVEL, Typed

FRAMES = 1502
"""1501 calls, and the module."""


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "fails_deep_down.py", tmp_path_factory.mktemp("deep"), status=1)


@pytest.fixture(scope="module")
def session(deep: Path) -> Iterator[Session]:
    with Session(deep) as session:
        yield session


def test_the_stack_is_whole(session: Session) -> None:
    session.seek("@exc")

    stack = session.ask.stack()

    assert len(stack) == FRAMES
    assert [each.function for each in stack[-2:]] == ["depth", "<module>"]
    assert [each.started for each in stack] == sorted((each.started for each in session.ask.stack(0)), reverse=True)
    assert len(session.here.stack) < FRAMES
    with pytest.raises(IndexError):
        stack[FRAMES]


def test_every_frame_can_be_selected(session: Session) -> None:
    typed = Typed.at("@exc", session)

    assert "#1500" in typed("up 1500")
    assert typed("p n") == "1500\n"
    assert "No frame #1502: there are 1,502 frames." in typed("up 2")
    assert "and 1,501 more; `where 1502` shows them all" in typed("where 1")
    shown = typed("where 5000")
    assert "#1501" in shown
    assert "more" not in shown
    assert "after   1400" in typed("frame 1400", "why n")


def test_as_data(deep: Path) -> None:
    def seek(*options: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "replaydbg", "seek", str(deep), "@exc", "--json", *options]
        done = run(command, cwd=deep.parent, env=os.environ, timeout=60)
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    told = seek()
    assert (told["frames"], len(told["stack"])) == (FRAMES, 1000)
    told = seek("--frame", "1400")
    assert told["locals"][0]["text"] == "1400"
    assert len(told["stack"]) == 1401


@pytest.mark.slow
def test_the_panel_says_how_many_there_are(deep: Path) -> None:
    async def look(seen: Seen) -> None:
        assert "1,302 more" in seen.text("stack")

        # The placeholder row leads to the others.
        await seen.press("2", "end", "enter")
        assert seen.scene.frame == 200
        assert "n = 200" in seen.text("values")
        assert "1,252 more" in seen.text("stack")

        await seen.press("colon")
        await seen.type("frame 1501")
        assert seen.scene.at is not None
        assert seen.scene.at.function == "<module>"
        assert "more:" not in seen.text("stack")

    see(deep, look)
