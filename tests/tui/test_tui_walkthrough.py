"""The documentation's walk-through is correct: its commands are run, its keys are pressed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.tui.widgets.rows import Rows
from replaydbg.tui.worker import moment_queries
from tests.harness.screens import program_text
from tests.harness.seen import Seen, see
from tests.harness.surroundings import without_steering

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "find-a-race.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
RUNS = os.environ.get("TEST_CHAOS_RUNS", "15")
"""Number of runs of the repaired program, in place of a hundred."""


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    return [body for each, body in FENCE.findall(PAGE.read_text(encoding="utf-8")) if each == language]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the page."""
    words = shlex.split(command.removeprefix("$ replaydbg "))
    line = [sys.executable, "-m", "replaydbg", *words]
    environment = without_steering(os.environ)
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False)


def test_the_program_is_the_one_of_the_pictures() -> None:
    program, _ = blocks("python")

    assert program == program_text()


@pytest.mark.slow
def test_every_step_leads_where_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The page does not say what to do if the machine is too busy to find all values in time.
    monkeypatch.setattr(moment_queries, "LONGEST", 60.0)
    program, _ = blocks("python")
    record = blocks("console")[0]
    (tmp_path / "till.py").write_text(program)

    recorded = run(record, tmp_path)
    assert recorded.returncode == 1
    assert "cents are missing" in recorded.stderr

    async def look(seen: Seen) -> None:
        for block in blocks("keys"):
            for line in block.splitlines():
                await follow(seen, line)

    assert see(tmp_path / "till.rdbg", look) == 0


async def follow(seen: Seen, line: str) -> None:
    """Execute a line of the page, or check that its text is shown."""
    if line.startswith("> "):
        wanted = line[2:]
        try:
            await seen.until(lambda: wanted in everything(seen))
        except AssertionError:
            raise AssertionError(f"{wanted!r} is not in\n{everything(seen)}") from None
        return
    keys = line if line.startswith("(") else re.split(r"\s{2,}", line)[0]
    if keys == "(the line where it falls)":
        rows = seen.app.screen.query_one(Rows)
        values = [int(row.text.split()[-1]) if row.text.split()[-1].isdecimal() else 0 for row in rows.rows]
        rows.cursor = next(at for at in range(1, len(values)) if values[at] < values[at - 1])
    elif keys.startswith("("):
        rows = seen.app.main.query_one("#values", Rows)
        rows.cursor = next(at for at, row in enumerate(rows.rows) if f" {keys[1:-1]} = " in row.text)
    elif len(keys) > 1 and keys.endswith("⏎"):
        await seen.type(keys[:-1])
    else:
        await seen.press({"⏎": "enter", "esc": "escape"}.get(keys, keys))


def everything(seen: Seen) -> str:
    """Return the text of all panels and the dialog."""
    screens = [seen.app.screen, seen.app.main]
    return "\n".join(row.text for screen in screens for rows in screen.query(Rows) for row in rows.rows)


@pytest.mark.slow
def test_the_repaired_program_loses_nothing(tmp_path: Path) -> None:
    program, repaired = blocks("python")
    whole = re.sub(r"class Till:.*?(?=\n\n\ndef teller)", lambda found: repaired.rstrip(), program, flags=re.S)
    (tmp_path / "till.py").write_text(whole)

    done = run(blocks("console")[2].replace("--chaos-runs 100", f"--chaos-runs {RUNS}"), tmp_path)

    assert "cents are missing" not in done.stderr
    assert "400 cents in the till, 400 were paid in" in done.stdout
