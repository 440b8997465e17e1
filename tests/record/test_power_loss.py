"""A recording made with --durable opens, after a power cut at any moment, to a whole beginning of the run.

It has every event that was committed before the last synchronisation, and so every event before an output that others
have seen. Power is not cut: `tests/harness/power_cuts.py` composes what a disk may have.
"""

import random
import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.power_cuts import Copy, build_library, random_image, read_copies, records_of
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.sanitizer import preloading

pytestmark = pytest.mark.slow

IMAGES = 100
_REPLAYS = 5

# Sends bytes to a socket now and then; between two of these it reads clocks, large files and modules, and prints to a
# file.
_PROGRAM = """import importlib, os, random, socket, sys, time
chance = random.Random(7)
here, there = socket.socketpair()
modules = ["json.tool", "wave", "colorsys", "fractions", "graphlib", "plistlib", "quopri", "netrc"]
with open("large", "wb") as file:
    file.write(os.urandom(3 << 20))
large = open("large", "rb", buffering=0)
for number in range(40):
    for _ in range(chance.randrange(60)):
        what = chance.randrange(6)
        if what == 0 and chance.random() < 0.3:
            os.getppid()
        elif what == 1:
            os.urandom(chance.randrange(3000))
        elif what == 2:
            os.stat("/")
        elif what == 3:
            large.seek(chance.randrange(2 << 20))
            large.read(chance.choice((10, 5000, 70000)))
        elif what == 4 and modules and chance.random() < 0.2:
            importlib.import_module(modules.pop())
        else:
            print(number, time.time(), flush=True)
    here.send(b"%d" % number)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that copies the disk."""
    return build_library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def recorded(library: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Copy], Outcome]:
    """A durable recording, what the disk had while it was made, and what the program printed."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "copies").mkdir()
    (folder / "program.py").write_text(_PROGRAM)
    outcome = _record(folder, preloading(library) | {"POWER_CUTS": str(folder / "copies")})
    assert outcome.status == 0, outcome.stderr
    return folder, read_copies(folder / "copies"), outcome


def test_it_opens_to_a_whole_beginning_with_all_that_was_synchronised(
    recorded: tuple[Path, list[Copy], Outcome], tmp_path: Path
) -> None:
    folder, copies, outcome = recorded
    chance = random.Random(IMAGES)
    everything = records_of(folder / "r.rdbg")
    lost = 0

    for number in range(IMAGES):
        image = random_image(copies, chance)
        assert image is not None
        image.write(tmp_path / "r.rdbg-live")
        with open_recording(tmp_path / "r.rdbg-live") as recording:
            checked = recording.check()
            assert recording.log_header is not None
            assert recording.damage == (), number
            assert checked.events == recording.log_header.crossings, number
            assert checked.events >= image.least, number
            lost += any("Power was lost" in each for each in recording.problems)
        found = records_of(tmp_path / "r.rdbg-live")
        assert found == everything[: len(found)], number
        if number < _REPLAYS:
            replayed = _run(tmp_path, tool.replay(sys.executable, tmp_path / "r.rdbg-live"))
            # 0: the image has the end of the program, too.
            assert replayed.status in (0, tool.ENDS_EARLY), replayed.stderr
            assert outcome.stdout.startswith(replayed.stdout)

    # Otherwise little was tested.
    assert lost > IMAGES // 20


def test_each_output_comes_after_the_synchronisation_of_what_precedes_it(
    recorded: tuple[Path, list[Copy], Outcome],
) -> None:
    """The output commit rule: of each event that sends bytes, all earlier ones are on the disk before it."""
    folder, copies, _ = recorded
    synced = {copy.events for copy in copies if copy.is_synced}
    with open_recording(folder / "r.rdbg") as recording:
        sent = [each.number for each in recording.events(gate="_socket.socket.send") if isinstance(each, Event)]

    assert len(sent) == 40
    assert [number for number in sent if number - 1 not in synced] == []


def _record(folder: Path, env: dict[str, str]) -> Outcome:
    command = tool.record(sys.executable, folder / "r.rdbg", ["program.py"], options=["--durable"])
    return _run(folder, command, env)


def _run(folder: Path, command: list[str], env: dict[str, str] | None = None) -> Outcome:
    base = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **passed_on()}
    return run(command, cwd=folder, env=base | (env or {}))
