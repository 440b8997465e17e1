"""`why` names the last write of cells of frames, whose labels and values move; these frames need numpy alone."""

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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "data_frames" / "keeps_values_as_pandas_does.py"
MARKED = [
    (match[1], number)
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
    if (match := re.search(r"  # <- (.*)", line)) is not None
]


@pytest.fixture(scope="module", params=[0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with usual_addresses():
        recording = record_file(PROGRAM, tmp_path_factory.mktemp("cells"))
        with Session(recording, spacing=request.param) as found:
            yield found


def in_frame(place: str) -> int:
    """Return the number of the stack frame that has the variable, where the program ends."""
    return 0 if place.startswith("shared") else 1


@pytest.mark.parametrize(("place", "line"), MARKED, ids=[each[0] for each in MARKED])
def test_the_last_write_is_named(place: str, line: int, session: Session) -> None:
    session.seek("@exc")

    told = session.run.why(place, in_frame(place))

    assert (told.line, told.is_binding) == (line, False)
    assert told.before != told.after


def test_what_moved_the_values_is_passed_over(session: Session) -> None:
    session.seek("@exc")

    texts = [each.text for each in session.run.history("frame.loc['y', 'b']", 1)]

    assert texts == ["np.int64(5)", "np.int64(7)"]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("frame.loc['x']", "it names more than one cell; add a row and a column"),
        ("frame.loc", "it names more than one cell; add a row and a column"),
        ("frame.split", "split of a DataFrame is computed"),
        ("frame.at['x', 'nothing']", "it does not exist, and never did"),
        ("frame.iat[0, 9]", "it does not exist, and never did"),
        ("frame.iat[0, 'a']", "'a' is not a position"),
        ("frame['a'].iloc[1][0]", "items of a cell are not tracked"),
        ("other.loc['x', 'a']", "the label 'x' means several positions"),
        ("names.loc['x', 'a']", "values of type <U4 are not tracked"),
        ("frame.loc['x', :]", "a slice is not an item"),
    ],
)
def test_what_is_no_tracked_cell_is_refused(place: str, reason: str, session: Session) -> None:
    session.seek("@exc")

    with pytest.raises(UsageError, match=re.escape(reason)):
        session.run.why(place, 1)


def test_watchpoints_stop_at_changes_of_a_cell_in_both_directions(session: Session) -> None:
    typed = Typed.at("@exc", session)
    typed("up", "watch frame.loc['z', 'a']")

    said = typed("reverse-continue")

    top = session.here.top
    assert top is not None
    assert "frame.loc['z', 'a'] has changed" in said
    assert session.source_line(top.file, top.line) == "frame.split()"
    typed("delete")


def test_labels_may_be_variables(session: Session) -> None:
    session.seek("@exc")

    told = session.run.why("frame.loc[label, names._mgr.axes[0][0]]", 1)

    assert told.line == dict(MARKED)["frame.loc['z', 'a']"]


def test_inside_a_line_what_it_has_written_so_far_counts(session: Session) -> None:
    session.seek("@out:1")

    told = session.run.why("frame.loc['y', 'a']")
    other = session.run.why("frame.loc['y', 'b']")

    assert told.moment is not None
    assert 'print("inside")' in told.source
    assert (told.before, told.after) == ("np.int64(2)", "np.int64(20)")
    assert other.line == dict(MARKED)["frame.loc['y', 'b']"]


def test_a_variable_that_does_not_exist_is_named(session: Session) -> None:
    session.seek("@exc")

    with pytest.raises(UsageError, match=re.escape("no variable nothing here")):
        session.run.why("nothing.loc['y', 'b']")
