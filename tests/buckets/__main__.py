"""Kill uploads to a bucket at random moments, and check that all are complete in the end, and none is seen before."""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.buckets.server import BUCKET, s3_server
from tests.harness.surroundings import restore_signals
from tests.remote.far import TIMEOUT, environment, make_programs, replaydbg

_URL = f"s3://{BUCKET}/team"
_CHECK = """import os, sys
from replaydbg.remote.listing import remote_rows
from replaydbg.remote.address import Address
from replaydbg.remote.remote_recording import RemoteRecording
from replaydbg.remote.remote_store import RemoteStore, piece_path
url = sys.argv[1]
store = RemoteStore(url)
for row in remote_rows(url):
    assert not row.problem, row
    for piece in RemoteRecording(Address(url, row.name), store).index.pieces:
        found = store.find(piece_path(piece.digest))
        assert found is not None and found.size == piece.size, (row.name, piece)
    print(row.name)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: all is as it should be; 1: something is not."""
    options = _parser().parse_args(argv)
    restore_signals()
    seed = options.seed if options.seed is not None else random.randrange(1 << 24)
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="replaydbg-buckets-"))
    try:
        with s3_server() as env:
            status = _try(folder, env, options.uploads, random.Random(seed))
            _is_refused(folder, env, f"s3://no-{BUCKET}/team", "there is no such bucket or directory.")
        with s3_server(has_rights=False) as env:
            _is_refused(folder, env, _URL, "you have no rights for it.")
    finally:
        shutil.rmtree(folder)
    return status


def _try(folder: Path, env: Mapping[str, str], uploads: int, chance: random.Random) -> int:
    outputs = _record(folder, uploads, chance)
    began = time.monotonic()
    _succeeds(folder, env, "push", "run-1", _URL, "--as", "whole")
    usual = time.monotonic() - began
    print(f"an upload that is not killed takes {usual:.1f} s", flush=True)
    killed = attempts = 0
    for number in range(1, uploads + 1):
        # Twice at a random moment, as long as that is before its end; then it is let go on.
        for _ in range(2):
            attempts += 1
            if not _is_killed(folder, env, f"run-{number}", chance.uniform(0.2, 1.0) * usual):
                break
            killed += 1
        if number % 10 == 0:
            names = _complete(folder, env)
            _print(f"{number} uploads, {killed} killed, {len(names) - 1} are there, each of them complete")
        _succeeds(folder, env, "push", f"run-{number}", _URL)
    there = _complete(folder, env)
    missing = {f"run-{number}" for number in range(1, uploads + 1)} - there
    print(
        f"{attempts} uploads were begun to be killed, {killed} were; {len(there) - 1} are there, {len(missing)} missing"
    )
    other = folder / "other"
    other.mkdir()
    for number in chance.sample(range(1, uploads + 1), min(10, uploads)):
        _succeeds(other, env, "pull", f"{_URL}/run-{number}", "-o", f"{number}.rdbg")
        _succeeds(other, env, "verify", f"{number}.rdbg")
        replayed = replaydbg(other, "replay", "-q", f"{number}.rdbg")
        assert (replayed.status, replayed.stdout) == (0, outputs[number - 1]), (number, replayed)
    print("those that were fetched are sound and replay equal")
    return 1 if missing else 0


def _record(folder: Path, uploads: int, chance: random.Random) -> list[bytes]:
    """Record programs that read some megabytes that no other one reads; return what they printed."""
    make_programs(folder)
    (folder / "reads.py").write_text("import helper, time\nprint(time.time(), len(open('data', 'rb').read()))\n")
    outputs = []
    for number in range(1, uploads + 1):
        (folder / "data").write_bytes(chance.randbytes(chance.randrange(1 << 20, 6 << 20)))
        recorded = replaydbg(folder, "record", "-q", "reads.py")
        assert (recorded.status, (folder / "store" / f"run-{number}.rdbg").exists()) == (0, True), recorded
        outputs.append(recorded.stdout)
    return outputs


def _is_killed(folder: Path, env: Mapping[str, str], name: str, after: float) -> bool:
    """Begin to send a recording, and kill that; return whether it was killed before it had ended."""
    command = [sys.executable, "-m", "replaydbg", "push", name, _URL]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(folder) | dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait(TIMEOUT) == -signal.SIGKILL


def _complete(folder: Path, env: Mapping[str, str]) -> set[str]:
    """Return the names of the recordings that are seen, all pieces of which are there."""
    done = subprocess.run(
        [sys.executable, "-c", _CHECK, _URL],
        cwd=Path.cwd(),
        env=environment(folder) | dict(env),
        capture_output=True,
        check=False,
        timeout=10 * TIMEOUT,
    )
    assert done.returncode == 0, done
    return set(done.stdout.decode().split())


def _succeeds(folder: Path, env: Mapping[str, str], *words: str) -> None:
    done = replaydbg(folder, *words, env=env)
    assert done.status == 0, (words, done)


def _is_refused(folder: Path, env: Mapping[str, str], url: str, reason: str) -> None:
    done = replaydbg(folder, "push", "run-1", url, env=env)
    assert (done.status, done.stderr.count(b"\n")) == (2, 1), done
    assert reason.encode() in done.stderr, done
    print(done.stderr.decode().strip())


def _print(text: str) -> None:
    print(text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.buckets", description=__doc__)
    parser.add_argument("--uploads", metavar="N", type=int, default=100, help="recordings to send (default: 100)")
    parser.add_argument("--seed", metavar="N", type=int, help="of the moments (default: random)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
