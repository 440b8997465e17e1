"""One round with a group: record a bank of four processes, kill all of them at a random moment, and resume them."""

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.log.group import page_rows
from tests.resumes.rounds import _COMMAND, FOLDER, TIMEOUT, Round, WrongRound, _tail, environment, finished, has_ended

ROUNDS = {"bank": 1500, "bank_tcp": 400}
"""How many rounds of payments each program makes."""
TOTAL = 4000
"""The money of four banks."""
_LATEST = 0.5
"""Seconds after the programs have begun until which they are killed; they may have ended before."""


def group_round(seed: int, program: str, base: Path, *, kills: int = 1) -> Round:
    """Play a round in the empty directory `base`; the group is killed up to `kills` times. Raises WrongRound."""
    chance = random.Random(seed)
    work = base / "work"
    work.mkdir()
    (base / "program.py").write_bytes((FOLDER / f"{program}.py").read_bytes())
    arguments = [str(base / "program.py"), str(ROUNDS[program])]
    command = [*_COMMAND, "record", "-q", "-o", str(base / "0"), *arguments]
    is_killed, status = _killed(command, work, base / "0.rdbgs", chance)
    done = 0
    while is_killed and done < kills and not _have_ended(_recording(base, done)):
        done += 1
        command = [*_COMMAND, "resume", "-o", str(base / f"{done}"), str(_recording(base, done - 1))]
        if done < kills:
            is_killed, status = _killed(command, work, base / f"{done}.rdbgs", chance)
        else:
            is_killed, status = False, finished(command, work).status
    if status != 0 and not (is_killed and _have_ended(_recording(base, done))):
        raise WrongRound(f"the group ended with {status} after {done} kills\n{_tail(base / 'output')}")
    if (work / "ledger").read_text() != f"{TOTAL}\n":
        raise WrongRound(f"the banks have {(work / 'ledger').read_text()!r} in all")
    _check_replays(_recording(base, done), work)
    return Round(program, 0, done)


def _recording(base: Path, number: int) -> Path:
    """Return the group that was made, or the recording if it was killed before it had any other process."""
    group = base / f"{number}.rdbgs"
    return group if group.exists() else base / f"{number}.rdbg"


def _have_ended(recording: Path) -> bool:
    """Whether all programs of a group had nothing more to do when they were killed."""
    members = sorted(recording.glob("*.rdbg")) if recording.is_dir() else [recording]
    return all(has_ended(each) for each in members)


def _killed(command: list[str], work: Path, directory: Path, chance: random.Random) -> tuple[bool, int]:
    """Run a command that records a group in `directory`, and kill all its processes at a random moment.

    Returns whether they were killed, and the status of the command.
    """
    output = work.parent / "output"
    with output.open("ab") as file:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    is_resumed = "resume" in command
    while process.poll() is None and not _has_begun(work, output, is_resumed=is_resumed):
        time.sleep(0.002)
    # Any moment is wanted, not one that a condition describes.
    time.sleep(chance.uniform(0, _LATEST))
    killed = kill_group(directory) if process.poll() is None else 0
    try:
        status = process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise WrongRound(f"{command[3]} does not end\n{_tail(output)}") from None
    if status in (-signal.SIGKILL, 128 + signal.SIGKILL):  # ours, or as a shell reports it
        return True, status
    if killed and status != 0:
        raise WrongRound(f"exit code {status}\n{_tail(output)}")
    return False, status


def _has_begun(work: Path, output: Path, *, is_resumed: bool) -> bool:
    """Whether the programs run: live, if they are resumed."""
    return b"recovery line\n" in output.read_bytes() if is_resumed else (work / "begun").exists()


def kill_group(directory: Path) -> int:
    """Kill all processes of a group that is being recorded; return how many there were.

    They are stopped first: none of them is to notice that another one has ended.
    """
    try:
        pids = [each.pid for each in page_rows(directory)[0] if each.pid]
    except (OSError, Corrupt):
        return 0  # it has ended
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    return len(pids)


def _check_replays(directory: Path, work: Path) -> None:
    """Check that each recording is sound, and that all replay equal."""
    until = time.monotonic() + TIMEOUT
    while directory.is_dir() and b'"complete": true' not in (directory / "group.json").read_bytes():
        if time.monotonic() > until:
            raise WrongRound("the group is not sealed")
        time.sleep(0.01)
    for path in sorted(directory.glob("*.rdbg")) if directory.is_dir() else [directory]:
        finished([*_COMMAND, "verify", str(path)], work)
    replayed = finished([*_COMMAND, "replay", str(directory)], work)
    if f"total {TOTAL}".encode() not in replayed.stdout:
        raise WrongRound(f"the replay printed {replayed.stdout[-200:]!r}")
