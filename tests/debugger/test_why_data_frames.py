"""`why`, `watch` and `history` follow cells and columns of data frames and series of pandas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import UsageError
from tests.harness.recording import record_file
from tests.harness.sanitizer import usual_addresses
from tests.harness.typed import Typed

pytest.importorskip("pandas", reason="only `tox -e pandas` installs pandas")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "data_frames" / "writes_cells.py"
MARKED = [
    (match[2], match[1], number)
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
    if (match := re.search(r"  # (<-|<~|==|~~) (.*)", line)) is not None
]


@pytest.fixture(scope="module", params=[0.01, 1000.0], ids=["checkpoints", "one_checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with usual_addresses():
        recording = record_file(PROGRAM, tmp_path_factory.mktemp("frames"))
        with Session(recording, spacing=request.param) as found:
            yield found


@pytest.mark.parametrize(("place", "mark", "line"), MARKED, ids=[each[0] for each in MARKED])
def test_the_last_write_is_named(place: str, mark: str, line: int, session: Session) -> None:
    session.seek("@exc")

    told = session.run.why(place)

    if mark == "~~":
        assert f"later by {PROGRAM.name}:{line} main" in told.note
        assert not told.is_equal
        return
    if mark == "<~":
        assert told.is_binding
        assert told.content is not None
        told = told.content
    assert (told.line, told.file, told.is_equal) == (line, str(PROGRAM), mark == "==")
    assert (told.before == told.after) is told.is_equal


def test_the_history_of_a_cell_has_the_lines_that_changed_it(session: Session) -> None:
    session.seek("@exc")

    found = [(each.source_line, each.text) for each in history(session, "table.loc[3, 'amount']")]

    assert found == [("table = made()", "np.float64(4.0)"), ('table.loc[3, "amount"] = 40.0', "np.float64(40.0)")]


class Seen:
    """A value of a history, with its line of source."""

    def __init__(self, source_line: str, text: str) -> None:
        self.source_line, self.text = source_line, text


def history(session: Session, place: str) -> Iterator[Seen]:
    for each in session.run.history(place):
        yield Seen(session.source_line(each.file, each.line).partition("  #")[0], each.text)


def test_watchpoints_stop_at_lines_of_the_program_behind_a_change(session: Session) -> None:
    typed = Typed.at("@exc", session)
    typed("watch table.loc[3, 'amount']")

    back = typed("reverse-continue")
    stopped = session.here.top
    typed("reverse-continue")
    first = session.here.top
    typed("continue")
    again = session.here.top

    assert stopped is not None
    assert first is not None
    assert "table.loc[3, 'amount'] has changed" in back
    assert session.source_line(stopped.file, stopped.line).startswith("table.iat[0, 0] = 11.0")
    assert session.source_line(first.file, first.line).startswith('table.loc[3, "amount"] = 40.0')
    assert again == stopped
    typed("delete")


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("twice.loc[0, 'a']", "the label 0 means several positions"),
        ("sparse.at[0, 'a']", "a SparseArray keeps its values in a way that is not tracked"),
        ("table.loc[99, 'amount']", "it does not exist, and never did"),
        ("table.loc[0]", "it names more than one cell; add a row and a column"),
        ("table.shape", "shape of a DataFrame is computed"),
        ("table.at[0, 'held'][1]", "items of a cell are not tracked"),
    ],
)
def test_what_cannot_be_followed_is_refused(place: str, reason: str, session: Session) -> None:
    session.seek("@exc")

    with pytest.raises(UsageError, match=re.escape(reason)):
        session.run.why(place)


def test_a_column_is_followed_as_a_whole(session: Session) -> None:
    session.seek("@exc")

    told = session.run.why("plain['a']")

    assert told.source.startswith("plain = pd.concat")
    assert (told.before, told.after) == ("[1.0, 3.0]", "[1.0, 3.0, 8.0]")


def test_a_question_leaves_the_run_as_it_was(session: Session) -> None:
    """What pandas itself caches when it is asked for a label stays in the copy that was asked."""
    session.seek("@exc")
    before = session.run.why("table.loc[3, 'amount']")

    session.run.why("table['name'][1]")

    assert session.run.why("table.loc[3, 'amount']") == before
    assert not session.here.is_changed
