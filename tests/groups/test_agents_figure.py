"""Agents in one process, and the same agents as recorded processes, have the same messages in flight."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.cli.main import main
from tests.harness.recorded_group import record_program

ROOT = Path(__file__).parents[2]
FIGURE = ROOT / "fixtures" / "agents" / "figure.py"
PAGE = ROOT / "docs" / "how-to" / "snapshot-agents.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
AGENTS = {2: "X", 3: "Y", 4: "Z"}
"""The processes, in the order in which they are forked."""


def printed(program: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(program), *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def blocks(language: str) -> list[str]:
    return [body for name, body in _BLOCK.findall(PAGE.read_text(encoding="utf-8")) if name == language]


@pytest.mark.parametrize("form", ["threads", "tasks", "sockets"])
def test_every_form_of_the_figure_prints_what_the_page_shows(form: str) -> None:
    output = printed(FIGURE, form)

    assert any(output in each for each in blocks("console"))


def test_the_page_shows_the_schedule_of_the_figure() -> None:
    (shown,) = (each for each in blocks("python") if each.startswith("SCHEDULE"))

    assert shown in FIGURE.read_text(encoding="utf-8")


def test_the_program_of_the_page_keeps_its_invariant(tmp_path: Path) -> None:
    whole, invariant, several_threads = (each for each in blocks("python") if not each.startswith("SCHEDULE"))
    program = tmp_path / "pay.py"

    program.write_text(whole + invariant)
    assert printed(program) in blocks("")

    before, _, rest = whole.partition("def pay(")
    program.write_text(before + several_threads + rest[rest.index("\n\n\n") :] + invariant)
    assert printed(program).startswith("snapshot X#1: complete\nX: ")


def test_a_cut_of_recorded_processes_has_the_same_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The position is that of X after its first send: there it begins the snapshot."""
    in_one_process = printed(FIGURE, "threads")
    source = FIGURE.read_text(encoding="utf-8").replace("sys.argv[1]", "'processes'")
    group = record_program(tmp_path, source)
    main(["events", str(group / "2.rdbg"), "--call", "posix.write", "--json"])
    first_send = json.loads(capsys.readouterr().out)["entries"][0]["event"]

    assert main(["cut", str(group), f"2@{first_send}", "--bytes", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    found = {f"{one}->{other}": "empty" for one in AGENTS.values() for other in AGENTS.values() if one != other}
    for message in data["in_flight"]:
        channel = "->".join(AGENTS[message[end]["process"]] for end in ("send", "receive"))
        assert found[channel] == "empty"
        found[channel] = repr(bytes.fromhex(message["content"]))
    channels = [line for line in in_one_process.splitlines() if "->" in line]
    assert [f"{channel}: {content}" for channel, content in found.items()] == channels
    assert data["is_consistent"]
