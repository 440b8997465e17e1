"""One round: record a program, kill it at a random moment, resume it, and check that nothing is lost or doubled."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from replaydbg.log.reader import open_recording
from replaydbg.resume.past import read_past
from tests.harness import tool
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.resumes.servers import make_database, missing_postgres, postgres

PROGRAMS = {
    "files": 1000,
    "threads": 6000,
    "server": 400,
    "worker": 1200,
    "database": 100,
    "checkpoints": 300,
    "postgres": 60,
}
"""How many entries each program makes."""
ANY_ORDER = frozenset({"threads", "server"})
"""Programs whose entries may come in any order."""

WITH_SERVER = "postgres"
FOLDER = Path(__file__).parent / "programs"
TIMEOUT = 120.0
_USAGE = 2
_KILLS = 2
"""A program that is to be killed more often makes more entries: it must not end before."""
_LONGER = {"files": 20, "threads": 40, "server": 10, "worker": 40, "database": 5, "checkpoints": 20, "postgres": 30}
"""How many times as many entries a program makes that has a standby: it must run until that has begun."""
LATEST = 0.25
"""Seconds after the program's first entry until which it is killed; it may have ended before."""
_COMMAND = [sys.executable, "-m", "replaydbg"]


class WrongRound(Exception):
    """Something is not as it must be; the message has the finding."""


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round."""

    program: str
    events: int
    """Events that the program had made when it was killed."""
    kills: int
    """How often it was killed and resumed; 0: it ended before it could be killed."""


def missing(program: str) -> str:
    """Return why a program cannot run here; empty if it can."""
    return missing_postgres() if program == WITH_SERVER else ""


def one_round(seed: int, program: str, base: Path, *, kills: int = 1, port: int = 0) -> Round:
    """Play a round in the empty directory `base`; the program is killed up to `kills` times. Raises WrongRound.

    `port`: that of the PostgreSQL server; 0: one is started for the round if the program needs it.
    """
    with ExitStack() as stack:
        if program == WITH_SERVER and not port:
            port = stack.enter_context(postgres())
        return _one_round(seed, program, base, kills, port)


def _one_round(seed: int, program: str, base: Path, kills: int, port: int) -> Round:
    chance = random.Random(seed)
    count = PROGRAMS[program] * max(kills, _KILLS) // _KILLS
    work, first = prepared(seed, program, base, count, port)
    status = _killed(first, work, base / "0.rdbg-live", 0, chance)
    events = recorded_events(base / "0.rdbg")
    done = 0
    while status == -signal.SIGKILL and done < kills:
        before = base / f"{done}.rdbg"
        if has_ended(before):  # it was killed on its way out
            check_ledger(program, count, work / "ledger")
            finished([*_COMMAND, "verify", str(before)], work)
            return Round(program, events, done)
        done += 1
        command = [*_COMMAND, "resume", "--in-flight=repeat", "-o", str(base / f"{done}.rdbg"), str(before)]
        if done < kills:
            status = _killed(command, work, base / f"{done}.rdbg-live", recorded_events(before), chance)
        else:
            status = finished(command, work).status
    if status != 0:
        raise WrongRound(f"the program ended with {status} after {done} kills, {events} events")
    check_ledger(program, count, work / "ledger")
    check_replay(base / f"{done}.rdbg", work)
    return Round(program, events, done)


def standby_round(seed: int, program: str, base: Path, *, port: int = 0) -> Round:
    """Play a round in the empty directory `base` in which a standby takes over from the program. Raises WrongRound.

    `port`: that of the PostgreSQL server; 0: one is started for the round if the program needs it.
    """
    with ExitStack() as stack:
        if program == WITH_SERVER and not port:
            port = stack.enter_context(postgres())
        return _standby_round(seed, program, base, port)


_HAD_ENDED = ("its program is no longer running", "it is no longer being written")


def _standby_round(seed: int, program: str, base: Path, port: int) -> Round:
    chance = random.Random(seed)
    count = PROGRAMS[program] * _LONGER[program]
    work, first = prepared(seed, program, base, count, port)
    follow = [*_COMMAND, "resume", "--follow", "--in-flight=repeat", "-o", str(base / "1.rdbg"), str(base / "0.rdbg")]
    with begun(first, work) as recorder, ExitStack() as stack:
        _wait_for(lambda: _has_begun(work) or recorder.poll() is not None)
        standby = stack.enter_context(begun(follow, work))
        _wait_for(lambda: "hot standby for" in _tail(base / "output") or standby.poll() is not None)
        _kill_program(recorder, chance)
        status, took_over = standby.wait(TIMEOUT), recorder.wait(TIMEOUT) != 0
    # It may have done all of its work before the standby could begin.
    said = _tail(base / "output")
    had_ended = not took_over and any(each in said for each in _HAD_ENDED)
    if status != 0 and not had_ended:
        raise WrongRound(f"the standby ended with {status}\n{_tail(base / 'output')}")
    check_ledger(program, count, work / "ledger")
    check_replay(base / f"{int(took_over)}.rdbg", work)
    return Round(program, recorded_events(base / "0.rdbg"), int(took_over))


def prepared(
    seed: int,
    program: str,
    base: Path,
    count: int,
    port: int,
    *,
    options: Sequence[str] = (),
    recording: str = "",
) -> tuple[Path, list[str]]:
    """Return the working directory, and the command that records the program with `count` entries.

    It records into `0.rdbg` in `base`, or into `recording`, which can be relative to the working directory.
    """
    work = base / "work"
    work.mkdir()
    (base / "program.py").write_bytes((FOLDER / f"{program}.py").read_bytes())
    recorded = [str(base / "program.py"), str(count)]
    if program == WITH_SERVER:
        make_database(port, f"ledger_{seed}")
        recorded += [str(port), f"ledger_{seed}"]
    target = recording or str(base / "0.rdbg")
    return work, [*_COMMAND, "record", "--children=none", "-q", *options, "-o", target, *recorded]


@contextmanager
def begun(command: list[str], work: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in the block, and end it with its program behind it."""
    with (work.parent / "output").open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > until:
            raise WrongRound("it does not begin")
        time.sleep(0.002)


def environment() -> Mapping[str, str]:
    """Return the environment of the commands."""
    return without_steering(os.environ)


def _killed(command: list[str], work: Path, live: Path, events: int, chance: random.Random) -> int:
    """Run a command that records into `live`, and kill its program; return its status.

    It is killed at a random moment after it has made more than `events` events.
    """
    with begun(command, work) as process:
        while process.poll() is None and not (live_events(live) > events and _has_begun(work)):
            time.sleep(0.002)
        _kill_program(process, chance)
        try:
            status = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise WrongRound(f"{command[3]} does not end") from None
    if status in (_USAGE, tool.DIVERGED) or (status == 1 and "resume" in command):
        raise WrongRound(f"exit code {status}\n{_tail(work.parent / 'output')}")
    return -signal.SIGKILL if status == 128 + signal.SIGKILL else status


def _kill_program(recorder: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Kill the program of a recorder, at any moment soon, not at one that a condition describes."""
    time.sleep(chance.uniform(0, LATEST))
    for pid in _children_of(recorder.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _has_begun(work: Path) -> bool:
    """Whether the program has imported what it needs, and made its ledger."""
    return (work / "ledger").exists() or (work / "ledger.db").exists()


def live_events(live: Path) -> int:
    """Return how many events are in the log of a program that runs."""
    try:
        with (live / "log").open("rb") as log:
            return int.from_bytes(log.read(32)[24:], "little")
    except OSError:
        return 0


def _children_of(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def finished(command: list[str], work: Path) -> Finished:
    """Run a command to its end. Raises WrongRound if it fails."""
    done = run(command, cwd=work, env=environment(), timeout=TIMEOUT)
    if done.status != 0:
        shown = done.stderr.decode(errors="replace")[-3000:]
        raise WrongRound(f"{command[3]}: {done.ending}\n{shown}")
    return done


def _tail(path: Path) -> str:
    return path.read_text(errors="replace")[-3000:]


def recorded_events(path: Path) -> int:
    """Return how many events a recording has."""
    with open_recording(path) as recording:
        return recording.log_header.crossings if recording.log_header is not None else 0


def has_ended(path: Path) -> bool:
    """Whether the program of a recording had nothing more to do when it was killed."""
    with open_recording(path) as recording:
        return read_past(recording, None).has_ended


def check_ledger(program: str, count: int, path: Path) -> None:
    found = [int(line) for line in path.read_text().splitlines()]
    if program in ANY_ORDER:
        found.sort()
    if found != list(range(count)):
        lost = sorted(set(range(count)) - set(found))[:5]
        doubled = sorted({each for each in found if found.count(each) > 1})[:5]
        raise WrongRound(f"{len(found)} entries instead of {count}: lost {lost}, doubled {doubled}, order {found[:5]}")


def check_replay(path: Path, work: Path) -> None:
    """Check that the continued recording is sound and replays equal."""
    finished([*_COMMAND, "verify", str(path)], work)
    replayed = finished([*_COMMAND, "replay", str(path)], work)
    if b"entered" not in replayed.stdout:
        raise WrongRound(f"the replay printed {replayed.stdout[-200:]!r}")
    with open_recording(path) as recording:
        resumed = recording.header.raw.get("resumed", [])
    assert all(set(each) == {"from", "event", "when"} for each in resumed), json.dumps(resumed)
