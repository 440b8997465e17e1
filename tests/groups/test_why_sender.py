"""`why` follows a value through a message into the process that sent it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness.process import run
from tests.harness.recorded_group import ANSWERS, BANK, record_program
from tests.harness.typed import Typed

pytestmark = pytest.mark.slow

Ask = Callable[..., str]


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_program(tmp_path_factory.mktemp("bank"), BANK)


@pytest.fixture
def why(bank: Path) -> Ask:
    def ask(*words: str) -> str:
        command = [sys.executable, "-m", "replaydbg", "why", "-q", *words]
        done = run(command, cwd=bank.parent, env=dict(os.environ), timeout=100)
        assert done.status == 0, done.stderr
        return done.stdout.decode()

    return ask


def test_the_sender_of_a_received_value(bank: Path) -> None:
    with Session(bank / "1.rdbg") as session:
        typed = Typed.at("@end", session)
        with typed.prompt.view.group:
            shown = typed("why reply")

            sent = rf"sent by 2@\d+ prog\.py:{ANSWERS}  os\.write"
            found = re.search(rf"from event (\d+): posix\.read.*\n    {sent}", shown)
            assert found, shown
            assert shown.splitlines()[-1].endswith(f"jump-to-sender {found[1]}")

            typed(f"jump-to-sender {found[1]}")
            assert "balance -= amount" in typed("why balance")


def test_at_the_command_line(why: Ask, bank: Path) -> None:
    shown = why("made.rdbgs/1", "reply")

    found = re.search(rf"    sent by 2@(\d+) prog\.py:{ANSWERS}  os\.write", shown)
    assert found, shown
    next_ = shown.splitlines()[-1]
    assert re.search(rf"replaydbg debug \S*made\.rdbgs/2\.rdbg --at {found[1]}:0$", next_), next_
    words = next_.rpartition("replaydbg debug ")[2].split()
    command = [sys.executable, "-m", "replaydbg", "debug", "-q", "--batch", *words, "-c", "p balance"]
    assert run(command, cwd=bank.parent, env=dict(os.environ), timeout=100).stdout.endswith(b"\n40\n")


def test_as_data(why: Ask) -> None:
    facts = json.loads(why("made.rdbgs/1", "reply", "--json"))

    (event,) = facts["events"]
    (message,) = event["messages"]
    (part,) = message["parts"]
    assert (part["process"], part["line"], part["length"]) == (2, ANSWERS, 8)
    assert "messages" not in json.loads(why("made.rdbgs/1", "total", "--json"))["events"]


NOT_FROM_OTHERS = """\
import os
import subprocess

if not os.fork():
    os._exit(0)
outside, inside = os.pipe()
subprocess.run(["echo", "word"], stdout=inside)
given = os.read(outside, 10)
drawn = os.urandom(4)
"""


def test_values_that_no_recorded_process_sent(tmp_path: Path) -> None:
    made = record_program(tmp_path, NOT_FROM_OTHERS)
    with Session(made / "1.rdbg") as session:
        typed = Typed.at("@end", session)

        assert "    sent by no recorded process" in typed("why given")
        assert "jump-to-sender" not in typed("why given")
        assert "sent by" not in typed("why drawn")


def test_a_group_that_cannot_be_read_is_said_to_be(tmp_path: Path) -> None:
    made = record_program(tmp_path, BANK)
    (made / "group.json").write_text("{}")
    with Session(made / "1.rdbg") as session:
        typed = Typed.at("@end", session)

        shown = typed("why reply")

        assert "note: who sent what was received is unknown: " in shown
        assert "after   b'0000040\\n'" in shown
