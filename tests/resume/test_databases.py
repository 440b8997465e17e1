"""A database of SQLite that was written to after the moment at which its program goes live."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.resume.going_on import record_in, resume_in

pytestmark = pytest.mark.slow

_INSERTS = """import os, sqlite3
os.getppid()
database = sqlite3.connect("rows.db", isolation_level=None)
database.execute("create table if not exists rows (number)")
for number in range(3):
    database.execute("begin")
    database.execute("insert into rows values (?)", (number,))
    os.getpid()
    database.execute("commit")
    os.getuid()
os.getppid()
os.getppid()
print(database.execute("select count(*) from rows").fetchone()[0])
"""


def events_of(recording: Path, gate: str) -> list[int]:
    with open_recording(recording) as opened:
        events = [each for each in opened.events() if isinstance(each, Event) and each.gate == gate]
    return [each.number for each in events if "program.py" in str(each.site)]


def numbers(folder: Path) -> list[int]:
    with closing(sqlite3.connect(folder / "rows.db")) as database:
        return [number for (number,) in database.execute("select number from rows order by rowid")]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Kill the program at its end, with three rows in its database."""
    (tmp_path / "program.py").write_text(_INSERTS)
    record_in(tmp_path, "whole")
    (tmp_path / "rows.db").unlink()
    record_in(tmp_path, "one", killed_at=events_of(tmp_path / "whole.rdbg", "posix.getppid")[-1])
    return tmp_path


_AHEAD = {"posix.getuid": [0, 1, 2, 1, 2], "posix.getppid": [0, 1, 2, 0, 1, 2]}
"""The rows of a program that goes on after its first call of a function: with the database open, or before."""


@pytest.mark.parametrize("gate", _AHEAD)
def test_it_goes_on_with_the_newer_one_if_forced(gate: str, killed: Path) -> None:
    after, is_open = _AHEAD[gate], gate == "posix.getuid"
    at = f"--at={events_of(killed / 'one.rdbg', gate)[0] + 1}"

    refused = resume_in(killed, "one", at)
    kept = numbers(killed)
    forced = resume_in(killed, "one", at, "--force")

    name = str(killed / "rows.db") if is_open else "rows.db"
    assert refused.status == 2
    assert f"{name} was written to after this moment, at event" in refused.stderr.decode()
    assert kept == [0, 1, 2]
    assert (forced.status, forced.stdout.decode()) == (0, f"{len(after)}\n"), forced
    assert numbers(killed) == after


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_transaction_is_not_mixed_with_later_ones(force: list[str], killed: Path) -> None:
    refused = resume_in(killed, "one", f"--at={events_of(killed / 'one.rdbg', 'posix.getpid')[0] + 1}", *force)

    assert refused.status == 2
    assert "it is in a transaction, and was written to later, at event" in refused.stderr.decode()
    assert numbers(killed) == [0, 1, 2]
