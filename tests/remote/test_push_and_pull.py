"""`push` and `pull`: a recording that was sent and fetched is the same recording."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import used_blocks
from tests.harness.process import run
from tests.harness.waiting import wait_until
from tests.remote.far import environment, index_of, make_programs, pieces, replaydbg, url
from tests.resume.going_on import KILLED, run_in

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_programs(tmp_path)
    return tmp_path


def elsewhere(folder: Path) -> Path:
    """Return the directory of another user, who has nothing yet."""
    other = folder / "elsewhere"
    other.mkdir()
    return other


def test_a_recording_that_was_fetched_replays(folder: Path) -> None:
    recorded = replaydbg(folder, "record", "-q", "program.py")
    sent = replaydbg(folder, "push", "run-1", url(folder))
    assert sent.status == 0, sent
    other = elsewhere(folder)

    pulled = replaydbg(other, "pull", f"{url(folder)}/run-1")

    assert (pulled.status, pulled.stdout) == (0, b"run-1\n"), pulled
    assert replaydbg(other, "replay", "run-1").stdout == recorded.stdout
    assert replaydbg(other, "verify", "run-1").status == 0
    assert (other / "store" / "run-1.rdbg").read_bytes() == (folder / "store" / "run-1.rdbg").read_bytes()
    assert sorted(path.name for path in (other / "store").glob("[!.]*")) == [DIRECTORY, "run-1.rdbg"]


def test_a_second_one_sends_what_is_new(folder: Path) -> None:
    for _ in range(3):  # the first one compiles
        assert replaydbg(folder, "record", "-q", "program.py").status == 0
    done = replaydbg(folder, "push", "--json", "run-2", "run-3", url(folder))

    first, second = json.loads(done.stdout)["recordings"]

    assert (first["is_new"], first["sent_size"]) == (True, first["size"])
    assert second["is_new"]
    assert second["sent_size"] < second["size"] / 5
    assert second["sent"] < second["pieces"]


def test_it_is_sent_once(folder: Path) -> None:
    replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "push", "run-1", url(folder))
    before = {name: path.stat().st_mtime_ns for name, path in pieces(folder).items()}

    again = replaydbg(folder, "push", "run-1", url(folder))

    assert (again.status, again.stderr) == (0, f"replaydbg: {url(folder)}/run-1 was there already.\n".encode()) or (
        b"/run-1 was there already." in again.stderr
    )
    assert {name: path.stat().st_mtime_ns for name, path in pieces(folder).items()} == before


def test_a_name_is_taken_once(folder: Path) -> None:
    for _ in range(2):
        replaydbg(folder, "record", "-q", "program.py")
    assert replaydbg(folder, "push", "run-1", url(folder), "--as", "mine").status == 0

    refused = replaydbg(folder, "push", "run-2", url(folder), "--as", "mine")

    assert refused.status == 2
    assert b"it has another recording called mine; give this one a name with --as." in refused.stderr
    assert replaydbg(folder, "push", "run-1", url(folder), "--as", "mine").status == 0


@pytest.mark.parametrize("name", ["", "5", "x.rdbgs", "../up", "a b", ".hidden", "a" * 101])
def test_names_that_no_address_can_have(name: str, folder: Path) -> None:
    replaydbg(folder, "record", "-q", "program.py")

    refused = replaydbg(folder, "push", "run-1", url(folder), "--as", name)

    assert refused.status == 2
    assert b"cannot be a name in a remote store" in refused.stderr
    assert not (folder / "far").exists()


def test_a_file_of_its_own(folder: Path) -> None:
    recorded = replaydbg(folder, "record", "-q", "-o", "own", "program.py")
    assert replaydbg(folder, "push", "own.rdbg", url(folder)).status == 0

    pulled = replaydbg(folder, "pull", f"{url(folder)}/own", "-o", "again")

    assert (pulled.status, pulled.stdout) == (0, b"again.rdbg\n"), pulled
    assert (folder / "again.rdbg").read_bytes() == (folder / "own.rdbg").read_bytes()
    assert replaydbg(folder, "replay", "again.rdbg").stdout == recorded.stdout
    assert replaydbg(folder, "pull", f"{url(folder)}/own", "-o", "again").status == 2


def test_a_recording_of_a_store_becomes_a_file_that_needs_no_other(folder: Path) -> None:
    recorded = replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "push", "run-1", url(folder))
    other = elsewhere(folder)

    assert replaydbg(other, "pull", f"{url(folder)}/run-1", "-o", "one.rdbg").status == 0

    assert sorted(path.name for path in other.iterdir() if path.name != "cache") == ["one.rdbg"]
    assert replaydbg(other, "replay", "one.rdbg").stdout == recorded.stdout


def test_a_group(folder: Path) -> None:
    recorded = replaydbg(folder, "record", "-q", "forks.py")
    assert replaydbg(folder, "push", "run-1", url(folder)).status == 0
    other = elsewhere(folder)

    pulled = replaydbg(other, "pull", f"{url(folder)}/run-1")

    assert (pulled.status, pulled.stdout) == (0, b"run-1\n"), pulled
    assert replaydbg(other, "replay", "run-1").stdout == recorded.stdout
    assert replaydbg(other, "verify", "run-1").status == 0
    named = replaydbg(other, "pull", f"{url(folder)}/run-1", "-o", "two")
    assert (named.status, named.stdout) == (0, b"two.rdbgs\n"), named
    assert replaydbg(other, "replay", "two.rdbgs").stdout == recorded.stdout
    assert replaydbg(other, "pull", f"{url(folder)}/run-1").stdout == b"run-2\n"
    block, *_ = (other / "store" / "run-2.rdbgs" / DIRECTORY).iterdir()
    assert block.samefile(other / "store" / "run-1.rdbgs" / DIRECTORY / block.name)


def test_one_process_of_a_group(folder: Path) -> None:
    replaydbg(folder, "record", "-q", "forks.py")

    assert replaydbg(folder, "push", "run-1/2", url(folder)).status == 0

    pulled = replaydbg(folder, "pull", f"{url(folder)}/run-1-2")
    assert pulled.stdout == b"run-2\n", pulled
    assert replaydbg(folder, "replay", "run-2").status == 3


def test_a_program_that_was_killed_with_its_recorder(folder: Path) -> None:
    """It stays a directory here, and is sealed there."""
    (folder / "loops.py").write_text("import os\nfor _ in range(100):\n    os.getrandom(8)\n")
    code = "import os, signal, sys\nfrom replaydbg.record import launcher\n"
    code += "launcher._sealed = lambda *args: os.kill(os.getpid(), signal.SIGKILL)\nlauncher.record([sys.argv[1]])\n"
    run([sys.executable, "-c", code, "loops.py"], cwd=folder, env=environment(folder), timeout=60)
    assert (folder / "store" / "run-1.rdbg-live").is_dir()

    sent = replaydbg(folder, "push", "run-1", url(folder))

    assert sent.status == 0, sent
    assert [each.path for each in index_of(folder, "run-1").files] == ["recording.rdbg"]
    again = replaydbg(folder, "push", "run-1", url(folder))
    assert (again.status, b"was there already" in again.stderr) == (0, True), again
    pulled = replaydbg(elsewhere(folder), "pull", f"{url(folder)}/run-1", "-o", "x")
    assert pulled.status == 0, pulled


def test_what_is_sent_is_not_removed_meanwhile(folder: Path) -> None:
    """An older piece is sent again, so that whoever removes unused pieces sees that somebody needs it."""
    replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "push", "run-1", url(folder))
    replaydbg(folder, "rm", f"{url(folder)}/run-1")
    old = time.time() - 13 * 3600
    for path in pieces(folder).values():
        os.utime(path, (old, old))

    assert replaydbg(folder, "push", "run-1", url(folder)).status == 0

    assert all(path.stat().st_mtime > old + 3600 for path in pieces(folder).values())


def test_secrets_stay_masked(folder: Path) -> None:
    secret = "AKIAQQ3FAKEKEY7EXAMP"
    env = {"AWS_ACCESS_KEY_ID": secret, "MY_PASSWORD": "correct-horse-battery"}
    assert replaydbg(folder, "record", "-q", "program.py", env=env).status == 0

    assert replaydbg(folder, "push", "run-1", url(folder)).status == 0

    whole = b"".join(path.read_bytes() for path in (folder / "far").rglob("*") if path.is_file())
    assert secret.encode() not in whole
    assert b"correct-horse" not in whole


def test_a_push_that_is_killed_goes_on(folder: Path) -> None:
    """What was sent is not sent again, and nobody sees the recording before it is whole."""
    for _ in range(2):
        replaydbg(folder, "record", "-q", "program.py")
    code = """import os, signal, sys, time
from replaydbg.remote import remote_store
written = remote_store.RemoteStore.write
def write(self, path, data):
    written(self, path, data)
    time.sleep(0.3)  # for what other threads have begun to write
    os.kill(os.getpid(), signal.SIGKILL)
remote_store.RemoteStore.write = write
from replaydbg.cli.main import main
main(sys.argv[1:])
"""
    killed = run(
        [sys.executable, "-c", code, "push", "run-2", url(folder)], cwd=folder, env=environment(folder), timeout=60
    )
    assert killed.status == -9
    assert b"run-2" not in replaydbg(folder, "ls", url(folder)).stdout
    there = set(pieces(folder))

    done = replaydbg(folder, "push", "--json", "run-2", url(folder))

    (facts,) = json.loads(done.stdout)["recordings"]
    assert len(there) > 0
    assert facts["sent"] == facts["pieces"] - len(there)
    assert replaydbg(folder, "verify", f"{url(folder)}/run-2").status == 0


def test_a_pull_that_fails_leaves_nothing(folder: Path) -> None:
    replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "push", "run-1", url(folder))
    largest = max(pieces(folder).values(), key=lambda path: path.stat().st_size)
    largest.unlink()
    other = elsewhere(folder)

    failed = replaydbg(other, "pull", f"{url(folder)}/run-1")

    assert failed.status == 2
    assert f"run-1 needs pieces/{largest.name[:2]}/{largest.name}, which is missing.".encode() in failed.stderr
    assert list((other / "store").iterdir()) == []


def test_a_piece_that_was_changed(folder: Path) -> None:
    replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "push", "run-1", url(folder))
    largest = max(pieces(folder).values(), key=lambda path: path.stat().st_size)
    largest.write_bytes(bytes(largest.stat().st_size))
    other = elsewhere(folder)

    failed = replaydbg(other, "pull", f"{url(folder)}/run-1")

    assert failed.status != 0
    assert b"is not what its index says." in failed.stderr
    assert list((other / "store").iterdir()) == []
    shutil.rmtree(folder / "cache", ignore_errors=True)
    assert replaydbg(folder, "verify", f"{url(folder)}/run-1").status != 0


def test_a_recording_that_was_resumed_shares_its_past(folder: Path) -> None:
    (folder / "long.py").write_text("import os\nfor number in range(40_000):\n    os.getrandom(64)\n")
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "long.py"]
    assert run_in(folder, command, killed_at=39_000).status in KILLED
    assert run_in(folder, [*command[:3], "resume", "-q", "--in-flight=repeat", "run-1"]).status == 0

    done = replaydbg(folder, "push", "--json", "run-1", "run-2", url(folder))

    first, second = json.loads(done.stdout)["recordings"]
    assert second["sent_size"] < first["sent_size"] / 2


def test_a_program_that_still_runs(folder: Path) -> None:
    (folder / "waits.py").write_text("open('ready', 'w').close()\ninput()\n")
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "waits.py"]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdin=subprocess.PIPE)
    try:
        wait_until((folder / "ready").exists)
        refused = replaydbg(folder, "push", "latest", url(folder))
    finally:
        process.communicate(b"\n", timeout=60)

    assert (refused.status, b"is still being recorded (process " in refused.stderr) == (2, True), refused


def test_a_damaged_piece_is_sent_again(folder: Path) -> None:
    replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "push", "run-1", url(folder))
    largest = max(pieces(folder).values(), key=lambda path: path.stat().st_size)
    largest.write_bytes(bytes(largest.stat().st_size))

    done = replaydbg(folder, "push", "--check", "run-1", url(folder))

    assert (done.status, b"of it were sent again" in done.stderr) == (0, True), done
    assert replaydbg(elsewhere(folder), "pull", f"{url(folder)}/run-1").status == 0


def test_a_damaged_block_is_not_sent_and_a_fetched_one_heals(folder: Path) -> None:
    for _ in range(2):
        replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "push", "run-1", url(folder))
    shared = used_blocks(folder / "store" / "run-1.rdbg") & used_blocks(folder / "store" / "run-2.rdbg")
    paths = (folder / "store" / DIRECTORY / name for name in shared)
    block = max((path for path in paths if path.exists()), key=lambda path: path.stat().st_size)
    block.write_bytes(b"")

    refused = replaydbg(folder, "push", "run-2", url(folder))
    pulled = replaydbg(folder, "pull", f"{url(folder)}/run-1")

    assert refused.status == 1
    assert f"its block {block.name} is missing or damaged.".encode() in refused.stderr
    assert pulled.status == 0, pulled
    for name in ("run-1", "run-2", "run-3"):
        assert replaydbg(folder, "verify", name).status == 0


def test_what_a_killed_pull_has_left_is_removed(folder: Path) -> None:
    replaydbg(folder, "record", "-q", "program.py")
    left = folder / "store" / ".pulled-999999999"
    left.mkdir()
    os.utime(left, (0, 0))

    assert replaydbg(folder, "gc", "--recordings", "--keep", "last").status == 0

    assert not left.exists()


def test_recordings_of_tests_have_the_names_of_the_tests(folder: Path) -> None:
    (folder / "test_it.py").write_text("def test_one(): assert 0\ndef test_two(): assert 0\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--replaydbg=retain-on-failure"]
    run(command, cwd=folder, env=environment(folder), timeout=60)
    found = sorted(map(str, (folder / "test-results").glob("*/rec.rdbg")))
    assert len(found) == 2

    done = replaydbg(folder, "push", *found, url(folder))

    assert done.status == 0, done
    assert replaydbg(folder, "verify", f"{url(folder)}/test-it-py-test-one").status == 0
    assert replaydbg(folder, "replay", f"{url(folder)}/test-it-py-test-two").status != 2
