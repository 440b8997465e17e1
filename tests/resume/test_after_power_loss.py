"""After a power cut a program goes on from what the disk has: nothing that was printed is lost, nothing is doubled."""

import os
import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.resumes.power_loss import Loss, power_loss_round

pytestmark = pytest.mark.slow

_AFTER = ("--after-power-loss", "--in-flight=skip", "-o", "two.rdbg")
# It synchronises its file after two writes, makes two more, and is killed.
_PROGRAM = """import os, signal
with open("out", "xb", buffering=0) as file:
    for word in (b"one ", b"two ", b"three ", b"four "):
        file.write(word)
        if word == b"two ":
            os.fsync(file.fileno())
    os.kill(os.getpid(), signal.SIGKILL)
    file.write(b"five")
print("done")
"""


def replaydbg(folder: Path, *words: str) -> Finished:
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=60.0)


_DATABASE = """import os, signal, sqlite3
database = sqlite3.connect("ledger.db")
database.execute("pragma journal_mode = {mode}")
with database:
    database.execute("create table entries (number)")
os.kill(os.getpid(), signal.SIGKILL)
with database:
    database.execute("insert into entries values (1)")
print(database.execute("select count(*) from entries").fetchall())
"""


def record_killed(folder: Path, *options: str, text: str = _PROGRAM) -> list[int]:
    """Record a program; return the numbers of its writes."""
    (folder / "program.py").write_text(text)
    command = tool.record(sys.executable, Path("one.rdbg"), ["program.py"], options=options)
    assert run(command, cwd=folder, env=without_steering(os.environ), timeout=60.0).status in (-9, 137)
    with open_recording(folder / "one.rdbg") as recording:
        return [each.number for each in recording.events(gate="_io.FileIO.write") if isinstance(each, Event)]


@pytest.mark.parametrize(
    ("on_disk", "missing", "is_cut_off", "is_refused"),
    [
        (b"one two three ", 3, False, True),
        (b"one two ", 2, False, True),
        # One page has reached the disk, and the one before it has not. Without the option, only the last write counts.
        (b"one two \0\0\0\0\0\0four ", 2, True, False),
        (b"one two three four and later ones", None, True, True),
        (b"one two \0\0\0\0\0\0four and later ones", 2, True, True),
    ],
)
def test_it_goes_live_before_the_first_write_that_is_missing(
    on_disk: bytes, missing: int | None, is_cut_off: bool, is_refused: bool, tmp_path: Path
) -> None:
    writes = record_killed(tmp_path, "--durable")
    (tmp_path / "out").write_bytes(on_disk)

    plan = replaydbg(tmp_path, "resume", "one.rdbg", "--plan", "--after-power-loss")
    unchanged = (tmp_path / "out").read_bytes()
    if is_refused:
        refused = replaydbg(tmp_path, "resume", "one.rdbg", "--in-flight=skip")
        assert refused.status == 2 and b"or --after-power-loss after a power cut" in refused.stderr
    resumed = replaydbg(tmp_path, "resume", "one.rdbg", *_AFTER)

    assert plan.status == 0 and unchanged == on_disk
    assert (b"  truncated  " in plan.stdout) == is_cut_off
    if missing is None:
        assert (resumed.status, resumed.stdout) == (0, b"done\n")
        assert (tmp_path / "out").read_bytes() == b"one two three four five"
    else:
        assert b"live after event %d" % (writes[missing] - 1) in resumed.stderr
        assert resumed.status in (-9, 137)  # it kills itself again
        assert (tmp_path / "out").read_bytes() == b"one two three four "
    assert replaydbg(tmp_path, "verify", "two.rdbg").status == 0


def test_what_it_refuses(tmp_path: Path) -> None:
    record_killed(tmp_path)

    finished = replaydbg(tmp_path, "resume", "one.rdbg", *_AFTER)
    together = replaydbg(tmp_path, "resume", "one.rdbg", "--at", "3", *_AFTER)

    assert finished.status == together.status == 2
    assert b"it was not recorded with --durable" in finished.stderr
    assert b"--after-power-loss cannot be used with --at" in together.stderr


def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    losses: list[Loss] = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        losses += power_loss_round(seed, folder, images=8)[1]

    assert all(each.live_from <= each.events for each in losses)


@pytest.mark.parametrize(
    ("options", "sentence"), [((), "out is no longer a regular file"), (("--force",), "out cannot be truncated")]
)
def test_a_directory_in_the_place_of_a_file(options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    record_killed(tmp_path, "--durable")
    (tmp_path / "out").unlink()
    (tmp_path / "out").mkdir()

    refused = replaydbg(tmp_path, "resume", "one.rdbg", *_AFTER, *options)

    assert refused.status == 2, refused
    assert sentence in refused.stderr.decode() and b"Traceback" not in refused.stderr
    assert not (tmp_path / "two.rdbg").exists()


def test_databases(tmp_path: Path) -> None:
    results = {}
    for mode in ("delete", "wal"):
        folder = tmp_path / mode
        folder.mkdir()
        record_killed(folder, "--durable", text=_DATABASE.format(mode=mode))
        results[mode] = replaydbg(folder, "resume", "one.rdbg", *_AFTER)

    assert (results["delete"].status, results["delete"].stdout) == (0, b"[(1,)]\n"), results
    assert results["wal"].status == 2
    assert b"ledger.db: its write-ahead log may have commits that the recording lacks" in results["wal"].stderr


_SHORT = """import os, signal
{opening}
file.write(b"one ")
{later}
os.kill(os.getpid(), signal.SIGKILL)
file.write(b"two")
print("done")
"""


@pytest.mark.parametrize(
    ("opening", "later", "is_refused"),
    [
        ('file = open("out", "wb", buffering=0)', "", False),
        ('file = open("out", "xb", buffering=0)', "", False),
        ('file = open("out", "ab", buffering=0)', "", False),
        ('file = open(os.open("out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb", buffering=0)', "", False),
        # Nothing shows that it was not there before.
        ('file = open(os.open("out", os.O_WRONLY | os.O_CREAT), "wb", buffering=0)', "", True),
        # Somebody else has removed it: a file that was synchronised has its name.
        ('file = open("out", "wb", buffering=0)', "os.fsync(file.fileno())", True),
        ('file = open("draft", "wb", buffering=0)', 'os.rename("draft", "out")', True),
    ],
    ids=["w", "x", "a", "truncated", "created", "synchronised", "renamed"],
)
def test_a_new_file_whose_name_is_lost_is_made_again(
    opening: str, later: str, is_refused: bool, tmp_path: Path
) -> None:
    record_killed(tmp_path, "--durable", text=_SHORT.format(opening=opening, later=later))
    (tmp_path / "out").unlink()

    resumed = replaydbg(tmp_path, "resume", "one.rdbg", *_AFTER)

    if is_refused:
        assert resumed.status == 2 and b"out is gone" in resumed.stderr, resumed
        assert not (tmp_path / "out").exists()
    else:
        assert resumed.status in (-9, 137)  # it kills itself again
        assert (tmp_path / "out").read_bytes() == b"one "
        assert replaydbg(tmp_path, "verify", "two.rdbg").status == 0


_NEW_DATABASE = """import os, signal, sqlite3
database = sqlite3.connect("ledger.db")
{before}
os.kill(os.getpid(), signal.SIGKILL)
database.execute("create table if not exists entries (number)")
database.execute("insert into entries values (1)")
database.commit()
print(database.execute("select count(*) from entries").fetchone())
"""


@pytest.mark.parametrize(
    ("before", "options", "expected"),
    [
        ("", (), b"ledger.db is gone"),
        ("", ("--force",), b"(1,)"),
        ("", ("--after-power-loss",), b""),  # it kills itself again
        ('database.execute("begin"); database.execute("create table entries (number)")', ("--after-power-loss",), b""),
        ('with database: database.execute("create table entries (number)")', ("--after-power-loss",), b"is gone"),
    ],
    ids=["without the option", "forced", "new", "in a transaction", "synchronised"],
)
def test_a_database_that_is_gone(before: str, options: tuple[str, ...], expected: bytes, tmp_path: Path) -> None:
    record_killed(tmp_path, "--durable", text=_NEW_DATABASE.format(before=before))
    (tmp_path / "ledger.db").unlink()

    resumed = replaydbg(tmp_path, "resume", "one.rdbg", "--in-flight=skip", "-o", "two.rdbg", *options)

    assert expected in resumed.stdout + resumed.stderr, resumed
    assert (resumed.status == 2) == (b"is gone" in expected)
    assert (tmp_path / "ledger.db").exists() == (b"is gone" not in expected)


def test_a_database_that_could_not_be_opened_is_none(tmp_path: Path) -> None:
    failing = "try: sqlite3.connect('missing/ledger.db')\nexcept sqlite3.Error: pass"
    record_killed(tmp_path, text=_NEW_DATABASE.format(before=failing))

    plan = replaydbg(tmp_path, "resume", "one.rdbg", "--plan")

    assert plan.status == 0 and b"missing" not in plan.stdout, plan
