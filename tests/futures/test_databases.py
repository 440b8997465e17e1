"""A future has databases of SQLite of its own, whose transactions survive each fault."""

import json
from pathlib import Path

import pytest

from tests.futures.made import Ground

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "futures" / "faults"

_GOES_ON = """import os, sqlite3
database = sqlite3.connect("bank.db")
with database:
    database.execute("create table account (name primary key, balance)")
    database.execute("insert into account values ('a', 1)")
open_one = sqlite3.connect("bank.db")
os.getppid()
with database:
    database.execute("update account set balance = 2")
assert open_one.execute("select * from account").fetchall() == [("a", 2)]
other = sqlite3.connect("other.db")
with other:
    other.execute("create table thing (x)")
    other.executemany("insert into thing values (?)", [(number,) for number in range(2000)])
other.close()
assert os.path.getsize("other.db") > 4096 and not os.path.exists("other.db-journal")
assert sqlite3.connect("other.db").execute("select sum(x) from thing").fetchone() == (1999000,)
database.execute("begin immediate")
try:
    sqlite3.connect("bank.db", timeout=0).execute("begin immediate")
except sqlite3.OperationalError as error:
    print(error)
"""


def test_databases_of_a_future_are_its_own(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _GOES_ON)
    before = {name: (tmp_path / name).read_bytes() for name in ("bank.db", "other.db")}

    group = ground.futures(ground.event("posix.getppid"), 1, "-o", "kept")["groups"][0]

    assert (group["verdict"], group["last_line"]) == ("passed", "database is locked"), group
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert ground.replay(group["recordings"][0]).status == 0


def test_a_transaction_survives_each_fault(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, (PROGRAMS / "sqlite_transaction.py").read_text())
    at = str(ground.event("posix.getppid"))

    finished = ground.replaydbg(
        "futures", "one.rdbg", "--at", at, "--faults", "write,fsync,unlink", "--json", "-o", "kept", "--keep", "all"
    )

    found = json.loads(finished.stdout)
    failed = {each["message"] for each in found["trials"] if each["verdict"] != "passed"}
    assert found["passed"] > 20 and found["inconclusive"] == 0
    # The journal of what was cut short cannot be rolled back while the disk is full. Nothing is lost.
    assert failed == {"database or disk is full"}
    kept = [(each["recording"], each["status"]) for each in found["trials"]][::6]
    assert [ground.replay(name).status for name, _ in kept] == [status for _, status in kept]


def test_a_moment_within_a_call_of_sqlite(tmp_path: Path) -> None:
    """The last event before the thread is started is one of SQLite's, which holds a mutex by the thread's number."""
    text = """import sqlite3, threading
db = sqlite3.connect("x.db", timeout=5)
db.execute("create table t(a)"); db.execute("insert into t values (1)"); db.commit()
def raise_it():
    own = sqlite3.connect("x.db", timeout=5)
    own.execute("update t set a = a + 1"); own.commit()
threads = [threading.Thread(target=raise_it) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert db.execute("select a from t").fetchone() == (3,)
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.first_thread(), 6, "-o", "kept", "--keep", "all")

    assert (found["passed"], found["failed"], found["inconclusive"]) == (6, 0, 0), found["groups"]
    assert {ground.replay(name).status for group in found["groups"] for name in group["recordings"]} == {0}


def test_wal_mode_has_no_verdict(tmp_path: Path) -> None:
    text = """import signal, sqlite3, time
def stop(*_): raise SystemExit(0)
signal.signal(signal.SIGALRM, stop)
db = sqlite3.connect("x.db")
db.execute("create table t(a)"); db.commit()
signal.alarm(1)
time.sleep(60)
db.execute("pragma journal_mode=wal")
db.execute("insert into t values (1)")
"""
    ground = Ground.make(tmp_path, text)

    group = ground.one(ground.event("time.sleep"))

    assert group["verdict"] == "inconclusive" and "shm_map" in group["ending"], group
