"""Rounds with a disk of its own: a program is recorded durably on it, and resumed from copies that were made meanwhile.

A copy of the disk under a mounted file system is what a power cut would have left at that moment. Mounting needs
rights; where they are missing, nothing is tested.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.harness.process import Finished, run
from tests.resumes.rounds import (
    LATEST,
    PROGRAMS,
    TIMEOUT,
    WITH_SERVER,
    Round,
    WrongRound,
    begun,
    check_ledger,
    environment,
    has_ended,
    prepared,
    recorded_events,
)
from tests.resumes.servers import postgres

_SIZE = 96 << 20
# The mount and the loop device end with the namespace. It is always mounted at the same place: paths are recorded.
_MOUNT = 'mount -o loop "$0" "$1" && cd "$1" && shift && exec "$@"'
_COMMAND = [sys.executable, "-m", "replaydbg"]
_NOT_BEGUN = b"none of its events had reached the disk"
_LONGER = 4
"""How many times as many entries a program makes: it must run while its disk is copied."""


def missing_mount(folder: Path) -> str:
    """Return why no file in `folder` can be mounted; empty if one can."""
    if shutil.which("mkfs.ext4", path=_path()) is None or shutil.which("unshare") is None:
        return "mkfs.ext4 or unshare is missing"
    disk, work = _made_disk(folder), folder / "tried"
    work.mkdir()
    try:
        return "" if _on(disk, work, ["true"]).status == 0 else "no file can be mounted here"
    finally:
        disk.unlink()
        work.rmdir()


def disk_round(seed: int, program: str, base: Path, *, cuts: int = 1, port: int = 0) -> Round:
    """Play a round in the empty directory `base`; power is lost at `cuts` moments of one run. Raises WrongRound.

    `port`: that of the PostgreSQL server, which loses no power; 0: one is started if the program needs it.
    """
    with ExitStack() as stack:
        if program == WITH_SERVER and not port:
            port = stack.enter_context(postgres())
        return _disk_round(seed, program, base, cuts, port)


def _disk_round(seed: int, program: str, base: Path, cuts: int, port: int) -> Round:
    chance, count = random.Random(seed), PROGRAMS[program] * _LONGER
    work, command = prepared(seed, program, base, count, port, options=["--durable"], recording="0.rdbg")
    copies = _copied(command, work, _made_disk(base), cuts, chance)
    events = []
    for copy in copies:
        found = _on(copy, work, ["sh", "-c", "ls; ls 0.rdbg-live"])
        if b"0.rdbg\n" not in found.stdout and b"header.json" in found.stdout:  # else it had ended, or not begun
            events.append(_resumed(copy, work, program, count))
    return Round(program, sum(events) // max(len(events), 1), len(events))


def _made_disk(folder: Path) -> Path:
    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(_SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(disk)], check=True, timeout=TIMEOUT, env={"PATH": _path()})
    return disk


def _copied(command: list[str], work: Path, disk: Path, cuts: int, chance: random.Random) -> list[Path]:
    """Run a command on the disk, kill it, and return copies of the disk that were made before."""
    copies: list[Path] = []
    with begun(_namespace(disk, work, command), work) as process:
        seen = Path(f"/proc/{process.pid}/root{work}")
        while process.poll() is None and not any((seen / name).exists() for name in ("ledger", "ledger.db")):
            time.sleep(0.002)
        for number in range(cuts):
            time.sleep(chance.uniform(0, LATEST))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGSTOP)  # nothing is written to the disk while it is copied
                copies.append(disk.with_name(f"copy-{number}"))
                subprocess.run(["cp", "--sparse=always", str(disk), str(copies[-1])], check=True, timeout=TIMEOUT)
                os.killpg(process.pid, signal.SIGCONT)
    if process.returncode not in (-signal.SIGKILL, 0):
        text = (work.parent / "output").read_text(errors="replace")[-3000:]
        raise WrongRound(f"the program ended with {process.returncode}\n{text}")
    return copies


def _resumed(disk: Path, work: Path, program: str, count: int) -> int:
    """Resume from a copy of the disk, and check what comes of it; return how many events the recording had."""
    kept = work.parent / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    _checked(_on(disk, work, ["cp", "-r", "0.rdbg-live", str(kept)]), "cp")
    if recorded_events(kept) and has_ended(kept):
        return recorded_events(kept)
    options = ["--after-power-loss", "--in-flight=repeat", "-q", "-o", "1.rdbg"]
    resumed = _on(disk, work, [*_COMMAND, "resume", *options, "0.rdbg-live"])
    if _NOT_BEGUN in resumed.stderr and program != WITH_SERVER:  # nobody had heard from it
        return 0
    _checked(resumed, "resume")
    ledger = work.parent / "ledger"
    ledger.write_bytes(_checked(_on(disk, work, ["cat", "ledger"]), "cat").stdout)
    check_ledger(program, count, ledger)
    _checked(_on(disk, work, [*_COMMAND, "verify", "1.rdbg"]), "verify")
    replayed = _checked(_on(disk, work, [*_COMMAND, "replay", "1.rdbg"]), "replay")
    if b"entered" not in replayed.stdout:
        raise WrongRound(f"the replay printed {replayed.stdout[-200:]!r}")
    return recorded_events(kept)


def _checked(done: Finished, name: str) -> Finished:
    if done.status != 0:
        raise WrongRound(f"{name}: {done.ending}\n{done.stderr.decode(errors='replace')[-3000:]}")
    return done


def _on(disk: Path, work: Path, command: Sequence[str]) -> Finished:
    return run(_namespace(disk, work, command), cwd=work.parent, env=environment(), timeout=TIMEOUT)


def _namespace(disk: Path, work: Path, command: Sequence[str]) -> list[str]:
    return ["unshare", "--mount", "sh", "-c", _MOUNT, str(disk), str(work), *command]


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
