"""The table of the workloads, with the targets."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.harness.surroundings import without_steering

_PROGRAMS = Path(__file__).parent / "programs"
_TEXT_SIZE = 200_000_000
_FILES = 20_000
_CITIES = ("Aachen", "Bergen", "Cork", "Dresden", "Evora", "Florence", "Ghent", "Hull")


def _nothing(_directory: Path) -> None:
    """For programs that need no preparation."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A program that is run plain, recorded and replayed."""

    name: str
    # A description in one line.
    does: str
    # The interpreter's command line, in the prepared directory.
    argv: tuple[str, ...]
    # Maximum ratio of CPU time, recorded to plain; None: the project has set no target.
    target: float | None
    # Creates the inputs, once for all rounds.
    prepare: Callable[[Path], None] = _nothing
    # Removes the output of a run, before each run.
    clean: Callable[[Path], None] = _nothing
    # Modules that must be installed.
    needs: tuple[str, ...] = ()
    # Number of messages it passes; None: it does not measure messages.
    messages: int | None = None
    # Maximum ratio of CPU time, replayed to plain; None: only the ratio to the recording has a target.
    replay_target: float | None = None

    @property
    def missing(self) -> list[str]:
        """The modules that the workload needs and this environment does not have."""
        return [each for each in self.needs if find_spec(each) is None]


def _make_text(directory: Path) -> None:
    # One block of lines is repeated: creating 200 MB of different lines takes longer than measuring.
    block = "".join(
        f"{number:08d},{_CITIES[number % 8]},{number * 7919 % 100_000 / 100:.2f},{'lorem ipsum ' * (number % 5)}\n"
        for number in range(20_000)
    ).encode()
    with (directory / "amounts.csv").open("wb") as file:
        written = 0
        while written < _TEXT_SIZE:
            written += file.write(block)


def _make_tree(directory: Path) -> None:
    for number in range(200):
        folder = directory / "tree" / f"part-{number % 20}" / f"folder-{number}"
        folder.mkdir(parents=True)
        for at in range(_FILES // 200):
            (folder / f"{number}-{at}.txt").write_text(f"{number * at}\n")


def _remove_database(directory: Path) -> None:
    for name in ("accounts.db", "accounts.db-journal"):
        (directory / name).unlink(missing_ok=True)


def _make_suite(directory: Path) -> None:
    shutil.copy(_PROGRAMS / "suite.py.in", directory / "test_ledger.py")
    # An ini file of its own, or pytest uses the next one above the temporary directory.
    (directory / "pytest.ini").write_text("[pytest]\n")


def _remove_suite_leavings(directory: Path) -> None:
    shutil.rmtree(directory / "tmp", ignore_errors=True)


def _program(name: str) -> str:
    return str(_PROGRAMS / name)


# Measured in every run: its start-up is subtracted from the others.
EMPTY = Workload("empty", "an empty program: start-up", (_program("empty.py"),), None)

WORKLOADS = (
    EMPTY,
    Workload("compute", "pure computation, no crossing", (_program("compute.py"),), 1.02),
    Workload("mixed", "everyday code: what identity costs where it is used a little", (_program("mixed.py"),), 1.03),
    Workload("allocations", "ten million objects, and what identity costs them", (_program("allocations.py"),), 1.10),
    Workload("clock", "one million time.time()", (_program("clock.py"),), 1.3, replay_target=1.0),
    Workload(
        "entropy",
        "300,000 rounds of random(), getrandbits, choice, uuid4, urandom(16)",
        (_program("entropy.py"),),
        1.3,
    ),
    Workload(
        "text",
        "a text file of 200 MB read and parsed line by line",
        (_program("text.py"), "amounts.csv"),
        1.05,
        prepare=_make_text,
        replay_target=0.9,
    ),
    Workload(
        "walk",
        "a tree of 20,000 files walked, each file opened and read",
        (_program("walk.py"), "tree"),
        1.3,
        prepare=_make_tree,
        replay_target=0.8,
    ),
    Workload(
        "imports",
        "import pandas, SQLAlchemy and aiohttp",
        (_program("imports.py"),),
        1.25,
        needs=("pandas", "sqlalchemy", "aiohttp"),
        replay_target=1.0,
    ),
    Workload("formats", "json, re and csv", (_program("formats.py"),), 1.03, replay_target=1.0),
    Workload("children", "100 subprocesses (a shell that computes), output captured", (_program("children.py"),), 1.3),
    Workload(
        "database",
        "100,000 sqlite3 statements on a file, 100 transactions of 1,000 (600 inserts, 200 updates, 200 selects)",
        (_program("database.py"), "accounts.db"),
        1.5,
        clean=_remove_database,
    ),
    Workload(
        "pytest",
        "a suite of 300 tests under pytest",
        ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=tmp"),
        None,
        prepare=_make_suite,
        clean=_remove_suite_leavings,
        needs=("pytest",),
    ),
    Workload(
        "http",
        "2,000 requests to a threading HTTP server in the same process",
        (_program("http_loopback.py"),),
        1.15,
        messages=2_000,
        replay_target=0.8,
    ),
    Workload(
        "echo",
        "20,000 lines to an asyncio server in the same loop and back",
        (_program("echo.py"),),
        1.05,
        messages=20_000,
        replay_target=1.0,
    ),
    Workload(
        "queue",
        "200,000 numbers through a queue to four threads",
        (_program("queue_workers.py"),),
        1.3,
        messages=200_000,
        replay_target=1.0,
    ),
    Workload(
        "ping-pong",
        "100,000 numbers through a queue to another thread and back",
        (_program("ping_pong.py"),),
        1.0,
        messages=100_000,
        replay_target=1.0,
    ),
    Workload(
        "four-threads",
        "four threads in pure computation, preempted",
        (_program("four_threads.py"),),
        # 3.11 has no hook that is as cheap: its figure is only reported.
        1.6 if sys.version_info >= (3, 12) else None,
        replay_target=1.0,
    ),
    Workload(
        "rare-lock",
        "four threads that compute and seldom take a lock",
        (_program("rare_lock.py"),),
        1.15,
        replay_target=1.0,
    ),
    Workload(
        "parked-1",
        "40,000 messages to one thread, blocked in recv",
        (_program("parked.py"), "1"),
        None,
        messages=40_000,
        replay_target=1.0,
    ),
    Workload(
        "parked-1000",
        "40,000 messages to a thousand threads, each blocked in recv",
        (_program("parked.py"), "1000"),
        None,
        messages=40_000,
        replay_target=1.0,
    ),
)

# Maximum factor by which a message may take longer among a thousand waiting threads than with one.
PARKED_TARGET = 1.0

# Maximum additional milliseconds for the start-up of an empty program.
STARTUP_TARGET_MS = 40.0
# The same for its replay.
REPLAY_STARTUP_TARGET_MS = 40.0
# Bytes of a clock event in the log before compression.
CLOCK_BYTES_TARGET = 12.0


def environment() -> dict[str, str]:
    """Return the environment of the programs: ours, without variables that change their or the tool's behaviour."""
    kept = {
        name: value for name, value in without_steering(os.environ).items() if not name.startswith(("PYTEST_", "COV_"))
    }
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
