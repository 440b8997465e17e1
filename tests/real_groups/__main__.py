"""`python -m tests.real_groups`: real programs of several processes are recorded once, and all replayed three times."""

import argparse
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness import tool
from tests.harness.children import PROGRAMS, completed
from tests.harness.surroundings import key_beside, restore_signals, without_steering
from tests.harness.table import as_markdown, as_text, with_unit
from tests.real_groups.scenarios import SCENARIOS, Scenario

_DOCUMENT = Path(__file__).parents[2] / "docs" / "real-groups.md"
_FILES = Path(__file__).parent / "programs"
_REPLAYS = 3
_HEADING = ("program", "version", "what it does", "processes", "recorded", "events", "size", "equal")

_INTRODUCTION = """\
# Real programs of several processes

Each program is recorded once with `record`. Then the program's directory is removed, and `replay`
replays the whole group three times; its output must have the recorded lines. A process is *equal* if none of its
replays diverges. *processes* includes those that cannot be recorded, such as programs that are not Python. Clients run
unrecorded, and have ended before the first replay. A replay has no network: the fence refuses every connection.
`tox -e real-groups` writes this page.
"""


class Failed(Exception):
    """A program or its replay is not as it must be."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a program."""

    scenario: Scenario
    # Processes of the group; those with a recording.
    processes: int = 0
    recorded: int = 0
    events: int = 0
    size: int = 0
    # Processes that were equal in each replay.
    equal: int = 0
    failure: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """0: all are equal; 1: one is not, or is not installed."""
    options = _parser().parse_args(argv)
    restore_signals()
    results = []
    for scenario in SCENARIOS:
        if not options.only or scenario.name in options.only:
            results.append(_check(scenario, options.keep))
            print(f"{scenario.name}: {results[-1].failure or 'equal'}", file=sys.stderr, flush=True)
    rows = [_row(each) for each in results]
    print(f"Python {platform.python_version()}")
    print(as_text(_HEADING, rows))
    if not options.only:
        summary = f"Python {platform.python_version()} on {platform.system()}."
        options.docs.write_text(f"{_INTRODUCTION}\n{summary}\n\n{as_markdown(_HEADING, rows)}\n")
    return int(any(each.failure for each in results))


def _check(scenario: Scenario, keep: Path) -> Result:
    if scenario.version is None:
        return Result(scenario, failure="it is not installed")
    base = Path(tempfile.mkdtemp(prefix=f"replaydbg-{scenario.name}-")).resolve()
    try:
        return _compared(scenario, base)
    except (Failed, AssertionError, subprocess.TimeoutExpired) as error:
        kept = keep / scenario.name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(base, kept, ignore_dangling_symlinks=True)
        return Result(scenario, failure=f"{error}; kept in {kept}")
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _compared(scenario: Scenario, base: Path) -> Result:
    status = _record(scenario, base)
    group = completed(base / "r.rdbgs")
    printed = (base / "printed").read_text(errors="replace")
    recorded = [each for each in group.processes if each.recording]
    if scenario.shows not in printed or status != scenario.exit_code:
        raise Failed(f"it ended with {status} and printed {printed[-2000:]!r}")
    if len(recorded) < scenario.processes:
        raise Failed(f"only {len(recorded)} processes are recorded: {group.processes}")
    shutil.rmtree(base / "work")
    equal = Counter[int]()
    for _ in range(_REPLAYS):
        replays = _replay(base, printed)
        equal.update(each["process"] for each in replays if _is_equal(each))
    with_tool = [sys.executable, "-m", "replaydbg", "ps", "--json", "r"]
    rows = json.loads(subprocess.run(with_tool, cwd=base, capture_output=True, timeout=60, check=True).stdout)
    events = sum(each["events"] or 0 for each in rows["processes"])
    right = sum(count == _REPLAYS for count in equal.values())
    size = sum(path.stat().st_size for path in (base / "r.rdbgs").rglob("*") if path.is_file())
    result = Result(scenario, len(group.processes), len(recorded), events, size, right)
    if right != len(recorded):
        raise Failed(f"{right} of {len(recorded)} processes are equal: {replays}")
    return result


def _record(scenario: Scenario, base: Path) -> int:
    """Record it; return its exit code."""
    work = base / "work"
    for name, source in scenario.files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_FILES / source, work / name)
    places = {"port": str(_free_port()), "python": sys.executable}
    words = [_filled(word, places) for word in scenario.command]
    command = tool.record(sys.executable, base / "r", words, options=PROGRAMS)
    env = without_steering(os.environ) | key_beside(base)
    with (base / "printed").open("wb") as out:
        process = subprocess.Popen(command, cwd=work, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            if scenario.client:
                client = [_filled(word, places) for word in scenario.client]
                subprocess.run([sys.executable, *client], cwd=work, timeout=120, check=True)
                os.kill(_first_process(base / "r.rdbgs"), signal.SIGTERM)
            return process.wait(timeout=120)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=30)


def _filled(word: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        word = word.replace("{" + name + "}", value)
    return word


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _first_process(directory: Path) -> int:
    words = [sys.executable, "-m", "replaydbg", "ps", "--json", str(directory)]
    listed = subprocess.run(words, capture_output=True, timeout=60, check=False)
    return int(json.loads(listed.stdout)["processes"][0]["pid"])


def _replay(base: Path, printed: str) -> list[dict[str, Any]]:
    """Replay all processes; return their results."""
    elsewhere = base / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "replaydbg", "replay", "-q", "--json", str(base / "r")]
    env = without_steering(os.environ) | {"TZ": "Pacific/Kiritimati", "HOME": "/nonexistent"} | key_beside(base)
    began = time.monotonic()
    done = subprocess.run(words, cwd=elsewhere, env=env, capture_output=True, timeout=300, check=False)
    shown = done.stderr.decode(errors="replace")
    # Writes that overlapped may come in either order.
    if Counter(shown.split()) != Counter(printed.split()):
        raise Failed(f"after {time.monotonic() - began:.1f} s the replays had printed {shown[-2000:]!r}")
    processes: list[dict[str, Any]] = json.loads(done.stdout)["processes"]
    return processes


def _is_equal(facts: dict[str, Any]) -> bool:
    replay = facts["replay"]
    return replay is not None and not facts["error"] and not replay["divergence"] and not replay["drift"]


def _row(result: Result) -> list[str]:
    scenario = result.scenario
    return [
        scenario.name,
        scenario.version or "-",
        scenario.does,
        str(result.processes),
        str(result.recorded),
        f"{result.events:,}",
        with_unit(result.size),
        f"{result.equal} of {result.recorded}" if not result.failure else "FAILED",
    ]


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(each.name for each in SCENARIOS)
    parser = argparse.ArgumentParser(prog="python -m tests.real_groups", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help=f"one program; can be repeated: {names}")
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, default=Path("test-results/real-groups"), help="for failures"
    )
    parser.add_argument(
        "--docs", metavar="FILE", type=Path, default=_DOCUMENT, help="where a full run writes its table"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
