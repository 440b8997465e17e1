"""A recording on a real file system, of which the disk is copied while it is written, as a power cut would leave it.

Needs the rights to mount a file; where they are missing, nothing is tested.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

CUTS = 4
_MIB = 1 << 20
_SIZE = 48 * _MIB
_PROGRAM = """import os, time
for number in range(100_000):
    for _ in range(number % 50):
        os.urandom(300)
    print(number, time.time(), flush=True)
"""
# Both the mount and the loop device end with the namespace.
_MOUNT = 'mount -o loop "$0" "$1" && shift && exec "$@"'


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory with a disk in it; not in memory."""
    path = Path(tempfile.mkdtemp(prefix="replaydbg-disk-", dir="/var/tmp"))
    try:
        for name in ("disk", "copy"):
            (path / f"{name}-mounted").mkdir()
        with (path / "disk").open("wb") as file:
            file.truncate(_SIZE)
        if shutil.which("mkfs.ext4") is None or shutil.which("unshare") is None:
            pytest.skip("mkfs.ext4 or unshare is missing")
        subprocess.run(["mkfs.ext4", "-q", "-F", str(path / "disk")], check=True, timeout=60)
        if _on(path, "disk", ["true"]).status != 0:
            pytest.skip("no file can be mounted here")
        yield path
    finally:
        shutil.rmtree(path)


def test_the_disk_has_what_was_printed(folder: Path) -> None:
    chance = random.Random(5)
    (folder / "program.py").write_text(_PROGRAM)
    recording = folder / "disk-mounted" / "r.rdbg"
    command = tool.record(sys.executable, recording, ["program.py"], options=["--durable"])
    recorder = subprocess.Popen(
        _namespace(folder, "disk", command), cwd=folder, env=_environment(folder), stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert recorder.stdout is not None
    printed: list[str] = []
    try:
        for _ in range(CUTS):
            printed += [recorder.stdout.readline() for _ in range(chance.randrange(1, 40))]
            os.killpg(recorder.pid, signal.SIGSTOP)
            shutil.copyfile(folder / "disk", folder / "copy")
            os.killpg(recorder.pid, signal.SIGCONT)

            live = folder / "copy-mounted" / "r.rdbg-live"
            replayed = _on(folder, "copy", tool.replay(sys.executable, live))

            assert replayed.status == tool.ENDS_EARLY, replayed.stderr
            found = replayed.stdout.splitlines(keepends=True)
            # The last line was printed; whether its event was in the log by then, nobody had asked the disk.
            assert found[: len(printed) - 1] == printed[:-1]
    finally:
        os.killpg(recorder.pid, signal.SIGKILL)
        recorder.wait(60)
        recorder.stdout.close()


def _namespace(folder: Path, name: str, command: list[str]) -> list[str]:
    mounted = folder / f"{name}-mounted"
    return ["unshare", "--mount", "sh", "-c", _MOUNT, str(folder / name), str(mounted), *command]


def _on(folder: Path, name: str, command: list[str]) -> Outcome:
    return run(_namespace(folder, name, command), cwd=folder, env=_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": f"{os.defpath}:/usr/sbin:/sbin", "HOME": str(folder), **passed_on()}
