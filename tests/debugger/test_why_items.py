"""`why` names the last write of items of arrays, deques and bytearrays, which are found without running Python."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import UsageError
from tests.harness.recording import record_file
from tests.harness.sanitizer import usual_addresses
from tests.harness.typed import TRAVEL, Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ARRAYS, GRIDS = TRAVEL / "writes_items_of_arrays.py", TRAVEL / "writes_items_of_grids.py"


def marked(program: Path) -> list[tuple[str, str, int]]:
    """Return the place, the mark and the number of each line with one."""
    lines = enumerate(program.read_text().splitlines(), 1)
    found = ((number, re.search(r"  # (<-|==|~~) (.*)", line)) for number, line in lines)
    return [(each[2], each[1], number) for number, each in found if each is not None]


CASES = [(program, *each) for program in (ARRAYS, GRIDS) for each in marked(program)]


@pytest.fixture(scope="module", params=[0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
def sessions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Session]]:
    with usual_addresses():
        recordings = {each: record_file(each, tmp_path_factory.mktemp(each.stem)) for each in (ARRAYS, GRIDS)}
        with (
            Session(recordings[ARRAYS], spacing=request.param) as arrays,
            Session(recordings[GRIDS], spacing=request.param) as grids,
        ):
            yield {ARRAYS: arrays, GRIDS: grids}


@pytest.mark.parametrize(("program", "place", "mark", "line"), CASES, ids=[f"{each[1]}{each[2]}" for each in CASES])
def test_the_last_write_is_named(
    program: Path, place: str, mark: str, line: int, sessions: dict[Path, Session]
) -> None:
    session = sessions[program]
    session.seek("@exc")

    told = session.run.why(place)

    if mark == "~~":
        assert f"later by {program.name}:{line} main" in told.note
        assert not told.is_equal
    elif mark == "==":
        assert (told.line, told.is_equal, told.before) == (line, True, told.after)
    else:
        written = told.changed if told.changed is not None else told
        assert (written.line, written.is_equal) == (line, False)
        assert written.before != written.after


def test_items_of_queues_and_deques_move(sessions: dict[Path, Session]) -> None:
    session = sessions[ARRAYS]
    session.seek("@exc")

    told = session.run.why("jobs.queue[0]")

    assert (told.function, told.before, told.after) == ("Queue._put", "", "'a'")


def test_a_write_through_a_view_is_seen(sessions: dict[Path, Session]) -> None:
    session = sessions[GRIDS]
    session.seek("@exc")

    told = session.run.why("turned[1, 0]")

    assert (told.source.partition("  #")[0], told.after) == ("turned[1, 0] = 3.0", "np.float64(3.0)")


@pytest.mark.parametrize(
    ("program", "place", "reason"),
    [
        (ARRAYS, "data['x']", "a bytearray computes its items"),
        (ARRAYS, "data[1, 2]", "a bytearray computes its items"),
        (ARRAYS, "data[99]", "it does not exist, and never did"),
        (GRIDS, "grid[9, 9]", "it does not exist, and never did"),
        (GRIDS, "grid[0, 0, 0]", "a ndarray computes its items"),
        (GRIDS, "names[0]", "a ndarray computes its items"),
        (GRIDS, "grid.T[0]", "T is computed by a getset_descriptor of ndarray"),
    ],
)
def test_what_only_python_finds_is_refused(
    program: Path, place: str, reason: str, sessions: dict[Path, Session]
) -> None:
    session = sessions[program]
    session.seek("@exc")

    with pytest.raises(UsageError, match=re.escape(reason)):
        session.run.why(place)


def test_watchpoints_stop_at_writes_of_items(sessions: dict[Path, Session]) -> None:
    typed = Typed.at("@start", sessions[GRIDS])
    typed("start", "advance main", "advance writes_items_of_grids.py:22")

    said = typed("watch grid[1, 2]", "continue")

    top = sessions[GRIDS].here.top
    assert top is not None
    assert "change of grid[1, 2]" in said
    assert top.line == 24  # the line behind `row[2] = 77.0`
    typed("delete")


def test_the_history_of_an_item(sessions: dict[Path, Session]) -> None:
    session = sessions[GRIDS]
    session.seek("@exc")

    texts = [each.text for each in session.run.history("grid[1, 2]")]

    assert texts == ["np.float64(0.0)", "np.float64(2.0)", "np.float64(77.0)", "np.float64(78.0)"]


def test_an_equal_write_among_others_to_the_same_array_is_found(sessions: dict[Path, Session]) -> None:
    session = sessions[GRIDS]
    session.seek("@exc")

    told = session.run.why("grid[0, 3]")

    assert (told.source, told.is_equal) == ("grid[i, j] = i * j", True)
