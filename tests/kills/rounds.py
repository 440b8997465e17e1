"""One round: record the tree of processes, kill some of them at a random time, and check everything that is left."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaydbg.errors import ReplaydbgError
from replaydbg.log.group import FACTS, page_rows, read_group
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.children import PROGRAMS
from tests.harness.process import run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

VICTIMS = ("a process", "the launcher", "all at once")
"""Victims: a random process of the group; the launcher alone; processes, launcher, and the process that seals."""

_PROGRAM = Path(__file__).parent / "programs" / "tree.py"
_LATEST = 1.5
"""Seconds after the start of `record` until which somebody is killed: the tree is complete after about half."""
_PATIENCE = 10.0
"""Seconds in which the processes end by themselves; a pool cannot, if its worker was killed while it held a lock."""
_TIMEOUT = 120.0


class WrongRound(Exception):
    """Something is not as it must be; the message has the finding."""


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round."""

    seed: int
    victim: str
    processes: int
    """With a row in the group."""
    recorded: int
    replayed: int
    """Up to the last event, without a divergence."""
    sealed: int
    events: int
    problems: tuple[str, ...]
    """Missing parts, as `verify` reports them."""


def one_round(seed: int, victim: str, base: Path) -> Round:
    """Play a round in the empty directory `base`. Raises WrongRound."""
    chance = random.Random(seed)
    (base / "work").mkdir()
    (base / "tree.py").write_bytes(_PROGRAM.read_bytes())
    output = base / "output"
    with output.open("ab") as out, output.open("ab") as err:
        command = tool.record(sys.executable, base / "r", [str(base / "tree.py")], options=PROGRAMS)
        launcher = subprocess.Popen(
            command, cwd=base / "work", env=_env(), stdout=out, stderr=err, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    with _ended(launcher, base):
        time.sleep(chance.uniform(0, _LATEST))  # any moment is wanted, not one that a condition describes
        _kill(launcher, victim, base / "r.rdbgs", chance)
        time.sleep(chance.uniform(0, 0.3))
        (base / "work" / "stop").touch()
        _wait_for_end(launcher, base / "r.rdbgs", is_sealed=victim != "all at once")
    (base / "tree.py").unlink()
    return _checked(base, seed, victim)


# ---- killing ----


def _kill(launcher: "subprocess.Popen[bytes]", victim: str, group: Path, chance: random.Random) -> None:
    if victim == "the launcher":
        launcher.kill()
        launcher.wait()
    elif victim == "all at once":
        first = {each.pid for each in _rows(group)[:1]}
        others = _children_of(launcher.pid) - first
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        for pid in others:  # what seals has a session of its own
            _kill_one(pid)
        launcher.wait()
    else:
        members = [each.pid for each in _rows(group) if each.pid and not each.has_ended]
        if members:
            _kill_one(chance.choice(members))


def _kill_one(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _rows(group: Path) -> list[Any]:
    try:
        return page_rows(group)[0]
    except (OSError, ReplaydbgError):
        return []  # it has not begun, or has ended


def _children_of(pid: int) -> set[int]:
    try:
        return {int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except OSError:
        return set()


@contextmanager
def _ended(launcher: "subprocess.Popen[bytes]", base: Path) -> Iterator[None]:
    """Leave no process behind, whatever happens."""
    try:
        yield
    finally:
        (base / "work" / "stop").touch()
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()


def _session_of(launcher: "subprocess.Popen[bytes]") -> set[int]:
    """Return the processes of the launcher's session that still run."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text(errors="replace").rpartition(") ")[2].split()
            if int(fields[3]) == launcher.pid and fields[0] not in "ZX":
                found.add(int(path.parent.name))
    return found


def _wait_for_end(launcher: "subprocess.Popen[bytes]", group: Path, *, is_sealed: bool) -> None:
    deadline = time.monotonic() + _PATIENCE
    while _session_of(launcher) and time.monotonic() < deadline:
        launcher.poll()
        time.sleep(0.02)
    while left := _session_of(launcher):
        # The program first: the launcher then seals.
        for pid in left - {launcher.pid} or left:
            _kill_one(pid)
        launcher.poll()
        time.sleep(0.05)
    launcher.wait()
    if is_sealed and (group / FACTS).exists():
        try:
            wait_until(lambda: read_group(group).is_complete, message=lambda: read_group(group))
        except AssertionError as error:
            raise WrongRound(f"the group was not sealed: {error}") from error


# ---- checking ----


def _checked(base: Path, seed: int, victim: str) -> Round:
    group = base / "r.rdbgs"
    output = (base / "output").read_bytes().decode(errors="replace")
    if "Traceback" in output and "replaydbg" in output:
        raise WrongRound(f"a traceback: {output[-2000:]}")
    printed = _by_process(output)
    if not (group / FACTS).exists():
        if printed:
            raise WrongRound(f"the program ran, and there is no group: {sorted(base.rglob('*'))}")
        return Round(seed, victim, 0, 0, 0, 0, 0, ())
    rows = _listed(group)
    if victim == "all at once" and not rows[0]["pid"] and not printed:
        return Round(seed, victim, 1, 0, 0, 0, 0, _stated(group, rows[0]))
    recorded = [each for each in rows if each["recording"]]
    problems = [problem for each in recorded for problem in _verified(group, each)]
    unknown = printed.keys() - {each["pid"] for each in recorded}
    if unknown:
        raise WrongRound(f"processes {unknown} printed something and have no recording: {rows}")
    if victim != "all at once" and (live := [each.name for each in group.iterdir() if each.name.endswith("-live")]):
        raise WrongRound(f"not sealed: {live} of {rows}")
    replayed = _replayed(group, recorded, printed)
    sealed = sum((group / f"{each['number']}.rdbg").exists() for each in recorded)
    events = sum(each["events"] or 0 for each in recorded)
    return Round(seed, victim, len(rows), len(recorded), replayed, sealed, events, tuple(problems))


def _stated(group: Path, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what `verify` says of a program that was killed before its interpreter had begun. Raises WrongRound."""
    path = group / "1.rdbg-live"
    try:
        with open_recording(path) as recording:
            recording.check()
            if not recording.damage:
                raise WrongRound(f"nothing is said to be missing: {row}")
            return recording.problems
    except ReplaydbgError as error:
        return (str(error).replace(str(group.parent), ""),)


def _by_process(output: str) -> dict[int, list[str]]:
    """Return the lines of each process; the first word of a line is its id."""
    found = defaultdict(list)
    for line in output.splitlines():
        if line.partition(" ")[0].isdigit():
            found[int(line.partition(" ")[0])].append(line)
    return found


def _listed(group: Path) -> list[dict[str, Any]]:
    listed = _tool(group.parent, "ps", "--json", str(group))
    try:
        rows: list[dict[str, Any]] = json.loads(listed[0])["processes"]
    except ValueError as error:
        raise WrongRound(f"ps: {listed}") from error
    return rows


def _verified(group: Path, row: Mapping[str, Any]) -> list[str]:
    """Open a recording, read all of it, and return what is missing. Raises WrongRound."""
    number = row["number"]
    path = next((path for each in (".rdbg", ".rdbg-live") if (path := group / f"{number}{each}").exists()), None)
    if path is None:
        raise WrongRound(f"process {number} has no recording: {row}")
    try:
        with open_recording(path) as recording:
            recording.check()
            if recording.damage:
                raise WrongRound(f"process {number}: {recording.damage}: {row}")
            return list(recording.problems)
    except ReplaydbgError as error:
        raise WrongRound(f"process {number} cannot be read: {error}: {row}") from error


def _replayed(group: Path, recorded: list[dict[str, Any]], printed: Mapping[int, list[str]]) -> int:
    """Replay all processes; return their number. Raises WrongRound if one is not right up to its last event."""
    shown, replays = "", {}
    if recorded:
        out, shown = _tool(group.parent, "replay", "-q", "--json", str(group))
        try:
            replays = {each["process"]: each for each in json.loads(out)["processes"]}
        except ValueError as error:
            raise WrongRound(f"replay: {out!r} {shown[-2000:]!r}") from error
    repeated = _by_process(shown)
    for each in recorded:
        facts = replays[each["number"]]
        replay = facts["replay"]
        if facts["error"] or replay["divergence"] or replay["drift"]:
            raise WrongRound(f"process {each['number']}: {facts}: {each}")
        if not replay["is_whole"] and replay["events"] != each["events"]:
            raise WrongRound(f"process {each['number']} was replayed up to {replay['events']}: {each}, {replay}")
        lines, again = printed.get(each["pid"], []), repeated.get(each["pid"], [])
        # A line is printed before its event is committed: one more may have arrived.
        if lines[: len(again)] != again or len(lines) > len(again) + 1:
            raise WrongRound(f"process {each['number']} printed {lines[-5:]}, its replay {again[-5:]}: {each}")
    return len(recorded)


def _tool(place: Path, *words: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "replaydbg", *words]
    done = run(command, cwd=place, env=_env(), timeout=_TIMEOUT)
    if done.is_timed_out:
        raise WrongRound(f"{words[0]} took more than {_TIMEOUT:.0f} s")
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def _env() -> dict[str, str]:
    return without_steering(os.environ)
