"""The lines that wrote the changed values of a diff, found together, are those that `why` finds one by one."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.commands.heap_commands import written_paths
from replaydbg.debugger import Session
from replaydbg.debugger.changed_values import last_writes
from replaydbg.debugger.object_history import holdings, last_written
from replaydbg.debugger.session_results import LastWrite
from replaydbg.errors import Cancelled
from replaydbg.heap.comparison.snapshot_diff import diff
from tests.harness.recording import record_file
from tests.harness.sanitizer import usual_addresses

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FIXTURES = Path(__file__).parents[2] / "fixtures" / "heap"
HEAD = """\
import gc

gc.disable()


class Thing:
    def __init__(self, number):
        self.value, self.other, self.inner = number, 0, None


class Slotted:
    __slots__ = ("left", "right")


def put(target, value):
    target.value = value


def set_total(value):
    global total
    total = value


def counts():
    number = 0

    def count():
        nonlocal number
        number += 1
        return number

    return count


things = [Thing(number) for number in range(6)]
slotted = [Slotted() for _ in range(4)]
table = {name: 0 for name in "abcd"}
items = list(range(5))
total = last = 0
counter = counts()
print("before", flush=True)
"""


def program_of(seed: int) -> str:
    """Return a program that changes its objects at random between two lines of output."""
    generator = random.Random(seed)

    def one() -> str:
        thing, other, value = generator.randrange(6), generator.randrange(6), generator.randrange(3)
        return generator.choice(
            [
                f"things[{thing}].value = {value}",
                f"things[{thing}].value += {value}",
                f"things[{thing}].value = things[{thing}].value",
                f"put(things[{thing}], {value})",
                f"setattr(things[{thing}], 'other', {value})",
                f"things[{thing}].inner = things[{other}]",
                f"things[{thing}].__dict__['value'] = {value}",
                f"table[{generator.choice('abcd')!r}] = {value}",
                f"items[{generator.randrange(-5, 5)}] = {value}",
                f"items[{thing % 4}:] = items[{thing % 4}:]",
                f"slotted[{thing % 4}].left = {value}",
                f"slotted[{thing % 4}].left = slotted[{thing % 4}].right = {value}",
                f"set_total({value})",
                f"total = {value}",
                "last = counter()",
                f"for each in things: each.other = {value}",
                f"for number in range({generator.choice([3, 50, 600])}):\n    things[number % 5].value = number",
                f"for each in things[:{thing}]:\n    put(each, {value})",
            ]
        )

    return HEAD + "".join(f"{one()}\n" for _ in range(40)) + "print('after', flush=True)\n"


def place_of(write: LastWrite | None) -> tuple[int, str, int, str] | None:
    return (write.count, write.file, write.line, write.function) if write is not None else None


def paths_and_modules(session: Session, first: str, last: str) -> tuple[list[str], tuple[str, ...]]:
    before, after = holdings(session, [first, last])
    return written_paths(diff(before, after, most=None)), tuple(after.modules)


def assert_as_one_by_one(session: Session, first: str, last: str) -> int:
    paths, modules = paths_and_modules(session, first, last)

    together = dict(last_writes(session, paths, session.count_of(last), modules, math.inf))

    session.seek(last)
    alone = {path: last_written(session, path, modules) for path in paths}
    # What was looked at in vain, because there were too many lines, may have been written later.
    assert not [path for path, write in alone.items() if write is not None and "more than" in write.note]
    assert {path: place_of(write) for path, write in together.items()} == {
        path: place_of(write) for path, write in alone.items()
    }
    return len([write for write in together.values() if write is not None])


@pytest.mark.parametrize("spacing", [0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
@pytest.mark.parametrize("seed", range(4))
def test_they_are_those_found_one_by_one_in_random_programs(tmp_path: Path, seed: int, spacing: float) -> None:
    program = tmp_path / "changes.py"
    program.write_text(program_of(seed))

    with usual_addresses(), Session(record_file(program, tmp_path), spacing=spacing) as session:
        assert assert_as_one_by_one(session, "@out:1", "@out:2") > 5


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FIXTURES / "many_changes.py", tmp_path_factory.mktemp("changes"))


@pytest.fixture
def session(recording: Path) -> Iterator[Session]:
    with Session(recording, spacing=0.001) as opened:
        yield opened


def test_they_are_those_found_one_by_one_where_there_are_many(session: Session) -> None:
    paths, modules = paths_and_modules(session, "@out:1", "@out:2")
    asked = [path for path in paths if path.endswith(".seen")]

    found = dict(last_writes(session, asked, session.count_of("@out:2"), modules, math.inf))

    assert len(found) == 300
    # The line that wrote it last belongs to another turn for each, and no two lines of the run are one.
    writes = [write for write in found.values() if write is not None]
    assert len({write.count for write in writes}) == 300
    assert {write.source for write in writes} == {"node.seen = turn"}


def test_the_session_stays_where_it_is(session: Session) -> None:
    paths, modules = paths_and_modules(session, "@out:1", "@out:2")
    here = session.seek("@out:1").count

    assert len(list(islice(last_writes(session, paths, session.count_of("@out:2"), modules, math.inf), 3))) == 3

    assert session.here.count == here


def test_nothing_is_found_without_time(session: Session) -> None:
    paths, modules = paths_and_modules(session, "@out:1", "@out:2")

    assert list(last_writes(session, paths, session.count_of("@out:2"), modules, 0.0)) == []
    # The limit was one of that search alone.
    assert session.run.why("nodes").moment is not None


def test_the_search_can_be_cancelled(recording: Path) -> None:
    wanted = False

    def progress(_: object) -> None:
        if wanted:
            raise Cancelled

    with Session(recording, spacing=0.001, progress=progress) as session:
        paths, modules = paths_and_modules(session, "@out:1", "@out:2")
        found = last_writes(session, paths, session.count_of("@out:2"), modules, math.inf)
        next(found)
        wanted = True
        with pytest.raises(Cancelled):
            list(found)


@pytest.fixture
def run(recording: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run_command(*words: str, code: int = 1) -> str:
        assert main(["diff", "-q", str(recording), "@out:1", "@out:2", *words]) == code
        captured = capsys.readouterr()
        return captured.out or captured.err

    return run_command


def test_diff_prints_the_difference_first(run: Any) -> None:
    shown = run("--limit", "4")

    assert shown.index("Changed values") < shown.index("Names that changed") < shown.index("Written at")
    written = shown[shown.index("Written at") :].splitlines()[1:]
    assert [line.split("  ")[1] for line in written] == [line.split("  ")[1].strip() for line in written]
    assert len(written) == 4
    assert all("many_changes.py:" in line for line in written)


def test_diff_says_how_many_it_did_not_search_for(run: Any) -> None:
    shown = run("--limit", "4", "--writes-within", "0")

    assert "The writes of 4 changed values were not found within 0 s. Use --writes-within 10 to search longer." in shown
    assert "Written at" not in shown
    assert "were not found" not in run("--limit", "4", "--no-writes")
    assert "SECONDS must be a number" in run("--writes-within", "soon", code=2)


def test_diff_is_data_with_all_that_was_found(run: Any) -> None:
    facts = json.loads(run("--limit", "4", "--json"))

    assert len(facts["written"]) == 4
    assert facts["unsearched"] == 0
    assert json.loads(run("--limit", "4", "--json", "--writes-within", "0"))["unsearched"] == 4
