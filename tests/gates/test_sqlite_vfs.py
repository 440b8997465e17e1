"""A recording does no harm to other users of the same database. For SQLite's answers see test_gates_sqlite.py."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import tool

pytestmark = pytest.mark.slow

_TRANSFERS = """
import random, sqlite3, sys

random.seed(sys.argv[1])
bank = sqlite3.connect("bank.db", timeout=60, isolation_level=None)
bank.execute("pragma synchronous=off")
bank.execute("pragma wal_autocheckpoint=20")
auditor = sqlite3.connect("bank.db", timeout=60, isolation_level=None)
wrong = commits = 0
for turn in range(150):
    giver, taker = random.sample(range(20), 2)
    bank.execute("begin immediate")
    bank.execute("update account set money = money - 7 where id = ?", (giver,))
    bank.execute("update account set money = money + 7 where id = ?", (taker,))
    bank.execute("insert into entry values (?, zeroblob(?))", (sys.argv[1], random.randrange(4000)))
    bank.execute("rollback" if turn % 6 == 0 else "commit")
    commits += turn % 6 != 0
    wrong += auditor.execute("select sum(money) from account").fetchone()[0] != 2000
    wrong += auditor.execute("select count(*) from entry where who = ?", (sys.argv[1],)).fetchone()[0] != commits
    if turn % 40 == 0:
        auditor.execute("pragma wal_checkpoint(restart)").fetchall()
print("wrong", wrong)
"""


def test_recorded_and_other_processes_share_a_write_ahead_log(tmp_path: Path) -> None:
    """Recording gives SQLite a copy of the shared index: no process may see a torn one, and each recording replays."""
    (tmp_path / "transfers.py").write_text(_TRANSFERS)
    bank = sqlite3.connect(tmp_path / "bank.db")
    bank.execute("pragma journal_mode=wal")
    bank.execute("create table account (id integer primary key, money integer)")
    bank.execute("create table entry (who, padding)")
    bank.executemany("insert into account values (?, 100)", [(number,) for number in range(20)])
    bank.commit()
    recordings = [tmp_path / "one.rdbg", tmp_path / "two.rdbg"]
    commands = [tool.record(sys.executable, path, ["transfers.py", path.stem]) for path in recordings]
    commands.append([sys.executable, "transfers.py", "unrecorded"])

    outputs = _run_together(commands, tmp_path)

    assert outputs == ["wrong 0\n"] * 3
    assert bank.execute("pragma integrity_check").fetchone() == ("ok",)
    assert bank.execute("select sum(money) from account").fetchone() == (2000,)
    bank.close()
    for path in tmp_path.glob("bank.db*"):
        path.unlink()
    assert _run_together([tool.replay(sys.executable, path) for path in recordings], tmp_path) == ["wrong 0\n"] * 2


def _run_together(commands: list[list[str]], folder: Path) -> list[str]:
    """Return the output of the commands, run at the same time; none may fail."""
    processes = [subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(commands)
    return outputs
