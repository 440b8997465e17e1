"""Commands take the address of a recording in a remote store where they take a name."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.remote.remote_index import ONE, Piece, RecordedFile, RemoteIndex
from replaydbg.store.piece_cache import LONGEST, name_of_piece
from tests.harness.history import Change, make_history
from tests.harness.process import run
from tests.harness.waiting import wait_until
from tests.remote.far import TIMEOUT, environment, index_of, make_programs, pieces, replaydbg, url

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with two recordings, and a remote one that has them, too."""
    return _made(tmp_path)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for tests that change nothing."""
    return _made(tmp_path_factory.mktemp("unchanged"))


def _made(folder: Path) -> Path:
    make_programs(folder)
    for program in ("program.py", "forks.py"):
        assert replaydbg(folder, "record", "-q", program).status == 0
    assert replaydbg(folder, "push", "run-1", "run-2", url(folder)).status == 0
    return folder


def test_reading_fetches_what_is_read(folder: Path) -> None:
    (folder / "reads.py").write_text("print(len(open('program.data', 'rb').read()))\n")
    (folder / "program.data").write_bytes(random.Random(1).randbytes(5 << 20))
    assert replaydbg(folder, "record", "-q", "reads.py").stdout == b"5242880\n"
    assert replaydbg(folder, "push", "run-3", url(folder)).status == 0

    shown = replaydbg(folder, "info", f"{url(folder)}/run-3")

    assert shown.status == 0, shown
    assert b"reads.py" in shown.stdout
    cache = folder / "cache" / "replaydbg" / "pieces"
    fetched = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    assert 0 < fetched < index_of(folder, "run-3").size / 10


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["replay", "{}/run-2"], b"3\n"),
        (["ps", "{}/run-2"], b"forks.py"),
        (["info", "{}/run-2/2"], b"2 of its group"),
        (["events", "{}/run-1"], b"program.py"),
        (["verify", "{}/run-1"], b"is sound"),
        (["verify", "{}/run-2"], b"is sound"),
        (["seek", "-q", "{}/run-1", "@end"], b"program.py"),
        (["channels", "{}/run-2"], b""),
    ],
)
def test_commands_take_addresses(words: list[str], expected: bytes, unchanged: Path) -> None:
    done = replaydbg(unchanged, *(each.format(url(unchanged)) for each in words))

    assert done.status == 0, done
    assert expected in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["info", "{}/run-1"], 0, "recording:  run-1 ({}/run-1)"),
        (["info", "{}/run-2"], 0, "recording:  run-2/1 ({}/run-2/1)"),
        (["info", "--json", "{}/run-2/2"], 0, '"path": "{}/run-2/2"'),
        (["resume", "{}/run-1"], 2, "Cannot resume '{}/run-1': its program has ended"),
        (["resume", "--json", "{}/run-1"], 2, '"recording": "{}/run-1"'),
    ],
)
def test_messages_name_the_address(words: list[str], code: int, expected: str, unchanged: Path) -> None:
    done = replaydbg(unchanged, *(each.replace("{}", url(unchanged)) for each in words))

    printed = (done.stdout + done.stderr).decode()
    assert done.status == code, done
    assert expected.replace("{}", url(unchanged)) in printed
    assert "replaydbg-remote-" not in printed


def test_what_is_no_recording_is_reported_by_its_address(folder: Path) -> None:
    put_index(folder, "other", b"something else", 1)

    done = replaydbg(folder, "info", f"{url(folder)}/other")

    assert done.status == 1, done
    assert f"'{url(folder)}/other'" in done.stderr.decode()
    assert b"replaydbg-remote-" not in done.stderr


def test_a_recording_of_another_program_is_reported_by_its_address(unchanged: Path, tmp_path: Path) -> None:
    repository = make_history(tmp_path / "other", [Change("v1", {"a.py": "1\n"}), Change("v2", {"a.py": "2\n"})])
    command = [sys.executable, "-m", "replaydbg", "ci", "--json", "--last", "1", f"{url(unchanged)}/run-1"]

    done = run(command, cwd=repository, env=environment(unchanged), timeout=TIMEOUT)

    assert done.status == 3, done
    assert f"The recording '{url(unchanged)}/run-1' is of a different program".encode() in done.stdout


def put_index(folder: Path, name: str, piece: bytes, count: int) -> None:
    """Add a recording to the remote store whose file is a piece, so many times."""
    path = folder / "far" / "pieces" / name_of_piece(piece)[:2] / name_of_piece(piece)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(piece)
    files = (RecordedFile(ONE, count * len(piece)),)
    index = RemoteIndex(index_of(folder, "run-1").facts, files, (Piece(name_of_piece(piece), len(piece)),) * count)
    (folder / "far" / "recordings" / f"{name}.json").write_bytes(index.encode())


@pytest.mark.parametrize("words", [["replay", "{}/vast"], ["pull", "{}/vast"], ["pull", "{}/vast", "-o", "vast"]])
def test_more_than_the_disk_has_is_refused_before_it_is_fetched(words: list[str], folder: Path) -> None:
    count = shutil.disk_usage(folder).free // LONGEST + 1000
    put_index(folder, "vast", bytes(LONGEST), count)

    done = replaydbg(folder, *(each.replace("{}", url(folder)) for each in words))

    assert done.status == 2, done
    assert f"{url(folder)}: vast needs {count * LONGEST:,} bytes, and " in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (folder / "cache" / "replaydbg" / "pieces").exists()
    assert not list(folder.glob("vast*"))
    assert [each.name for each in (folder / "store").iterdir() if "run" not in each.name] == [DIRECTORY]


def test_nothing_of_it_stays(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.mktemp("temporary")

    done = replaydbg(folder, "replay", f"{url(folder)}/run-1", env={"TMPDIR": str(own)})

    assert done.status == 0, done
    assert list(own.iterdir()) == []


def test_listing(folder: Path) -> None:
    there = json.loads(replaydbg(folder, "ls", "--json", url(folder)).stdout)
    here = json.loads(replaydbg(folder, "ls", "--json").stdout)

    assert there["store"] == url(folder)
    same = ("name", "created", "command", "status", "events", "python", "processes")
    assert [{key: each[key] for key in same} for each in there["recordings"]] == [
        {key: each[key] for key in same} for each in here["recordings"]
    ]
    assert replaydbg(folder, "ls", url(folder), "--command", "forks").stdout.count(b"\n") == 1
    assert replaydbg(folder, "ls", url(folder)).stdout == replaydbg(folder, "ls", url(folder)).stdout


def test_a_listing_sees_what_was_removed_and_what_is_new(folder: Path) -> None:
    replaydbg(folder, "ls", url(folder))
    assert replaydbg(folder, "rm", f"{url(folder)}/run-1").status == 0
    assert replaydbg(folder, "push", "run-1", url(folder), "--as", "again").status == 0

    names = [each["name"] for each in json.loads(replaydbg(folder, "ls", "--json", url(folder)).stdout)["recordings"]]

    assert names == ["again", "run-2"]


def test_one_index_that_is_damaged_is_listed_as_such(folder: Path) -> None:
    path = folder / "far" / "recordings" / "run-1.json"
    path.write_bytes(path.read_bytes()[:-100])

    listed = json.loads(replaydbg(folder, "ls", "--json", url(folder)).stdout)["recordings"]

    assert "its index is cut off or was changed" in listed[0]["problem"]
    assert listed[1]["problem"] is None
    failed = replaydbg(folder, "info", f"{url(folder)}/run-1")
    assert (failed.status, b"its index is cut off or was changed" in failed.stderr) == (1, True)
    cleared = replaydbg(folder, "gc", url(folder))
    assert (cleared.status, b"its index is cut off or was changed" in cleared.stderr) == (1, True)


def test_pieces_that_nobody_needs_go_after_a_day(folder: Path) -> None:
    assert replaydbg(folder, "rm", f"{url(folder)}/run-1").status == 0
    assert b"Removed 0 pieces" in replaydbg(folder, "gc", url(folder)).stdout
    unfinished = folder / "far" / "pieces" / "00" / ".00.partial"
    unfinished.parent.mkdir(exist_ok=True)
    unfinished.write_text("")
    for path in (unfinished, *pieces(folder).values()):
        os.utime(path, (time.time() - 25 * 3600,) * 2)

    done = replaydbg(folder, "gc", url(folder))

    assert done.status == 0, done
    assert not unfinished.exists()
    assert set(pieces(folder)) == {each.digest for each in index_of(folder, "run-2").pieces}
    assert replaydbg(folder, "verify", f"{url(folder)}/run-2").status == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["info", "{}/run-9"], "No recording '{}/run-9' in {}. `replaydbg ls {}` lists the recordings."),
        (["info", "{}/run-1/2"], "No recording '{}/run-1/2' in {}. `replaydbg ls {}` lists the recordings."),
        (["info", "{}/run-2/7"], "No recording '{}/run-2/7' in {}. `replaydbg ls {}` lists the recordings."),
        (["rm", "{}/run-9"], "No recording '{}/run-9' in {}. `replaydbg ls {}` lists the recordings."),
        (["rm", "{}/run-2/2"], "A group is removed as a whole: leave out '/2'."),
        (["ls", "file:///nowhere/at/all"], "recordings cannot be listed: there is no such bucket or directory."),
        (["gc", "file:///nowhere/at/all"], "pieces cannot be listed: there is no such bucket or directory."),
        (["rm", "{}/run-1", "run-1"], "Recordings of this machine and of remote stores cannot be removed together."),
        (["pull", "{}/run-2/2"], "A group is fetched as a whole: leave out '/2'."),
        (
            ["tag", "{}/run-1", "x"],
            "'{}/run-1' is in a remote store, and tags are kept beside recordings of this machine",
        ),
        (["unpack", "{}/run-2"], "'{}/run-2' is an address, and `unpack` takes a file that `pack` wrote"),
        (["sign", "{}/run-1"], "'{}/run-1' is in a remote store, where files never change: sign the recording first"),
        (["pull", "run-2"], "'run-2' is not the address of a recording, such as s3://bucket/team/run-12."),
        (["push", "run-1", "far"], "'far' is not the address of a remote store, such as s3://bucket/team."),
        (["push", "run-1", "run-2", "{}", "--as", "x"], "--as names one recording, and there are several."),
        (["ls", "nosuch://x"], "nosuch://x cannot be opened: Protocol not known: nosuch."),
        (
            ["info", "file://user:password@/x/run-1"],
            "'file:///x' has a user name before its path: write file:///DIRECTORY",
        ),
    ],
)
def test_one_sentence_for_each(words: list[str], reason: str, unchanged: Path) -> None:
    done = replaydbg(unchanged, *(each.replace("{}", url(unchanged)) for each in words))

    assert done.status == 2, done
    assert reason.replace("{}", url(unchanged)) in done.stderr.decode()
    assert b"password" not in done.stderr


def test_without_fsspec(folder: Path) -> None:
    (folder / "fsspec.py").write_text("raise ImportError('none here')\n")

    done = replaydbg(folder, "ls", "s3://bucket/team", env={"PYTHONPATH": str(folder)})

    assert (done.status, done.stderr) == (
        2,
        b"replaydbg: s3://bucket/team needs fsspec: pip install 'replaydbg[s3]'.\n",
    )


def test_a_store_that_cannot_be_written(folder: Path) -> None:
    (folder / "blocked").write_text("a file")

    done = replaydbg(folder, "push", "run-1", f"file://{folder}/blocked")

    assert done.status == 2
    assert b"cannot be" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_cache_that_cannot_be_written(folder: Path) -> None:
    (folder / "file").write_text("")

    done = replaydbg(folder, "replay", f"{url(folder)}/run-1", env={"XDG_CACHE_HOME": str(folder / "file")})

    assert done.status == 0, done


def test_an_index_from_anybody_spoils_no_listing(folder: Path) -> None:
    text = b"[" * 200_000
    (folder / "far" / "recordings" / "deep.json").write_bytes(text + b"\n" + name_of_piece(text).encode() + b"\n")
    (folder / "far" / "recordings" / "we ird.json").write_bytes(b"")
    (folder / "far" / "recordings" / "no-index").write_bytes(b"")

    listed = replaydbg(folder, "ls", url(folder))

    assert (listed.status, listed.stderr) == (0, b""), listed
    assert listed.stdout.count(b"\n") == 3
    assert b"unreadable" in listed.stdout


def test_what_a_killed_command_has_fetched_goes_with_the_next(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "replaydbg-remote-999999999-x" / "0").mkdir(parents=True)

    assert replaydbg(folder, "info", f"{url(folder)}/run-1", env={"TMPDIR": str(own)}).status == 0

    assert list(own.iterdir()) == []


def test_an_interrupted_command_leaves_nothing(folder: Path) -> None:
    (folder / "slow.py").write_text("for _ in range(30_000_000): pass\n")
    assert replaydbg(folder, "record", "-q", "slow.py").status == 0
    assert replaydbg(folder, "push", "run-3", url(folder)).status == 0
    own = folder / "own"
    own.mkdir()
    command = [sys.executable, "-m", "replaydbg", "replay", f"{url(folder)}/run-3"]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder) | {"TMPDIR": str(own)})
    wait_until(lambda: list(own.glob("*/0/run-3/run-3.rdbg")) or process.poll() is not None)

    process.send_signal(signal.SIGINT)

    assert process.wait(60) == -signal.SIGINT
    assert list(own.iterdir()) == []
