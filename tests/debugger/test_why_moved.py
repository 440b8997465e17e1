"""`why` reports that a line only moved an item to another index, and where it was."""

from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import MovedItem
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL, Typed

PROGRAM = TRAVEL / "moves_items.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("moved"))) as found:
        found.seek("@exc")
        yield found


@pytest.mark.parametrize(
    ("place", "line", "moved"),
    [
        ("items[2]", "line.insert(0, item)", MovedItem(1, "")),
        ("queue[0]", "queue.popleft()", MovedItem(1, "queue[1]")),
        ("pair[0]", "pair.reverse()", MovedItem(1, "pair[1]")),
        ("pair[-1]", "pair.reverse()", MovedItem(0, "pair[0]")),
        ("same[1]", "same[1] = same[0]", None),
        ("items[1]", "items[1] = d", None),
        ("twice[2]", "line.insert(0, item)", MovedItem(1, "")),
        ("twice[-2]", "twice.append(b)", MovedItem(3, "twice[3]")),
        ("twice[-1]", "twice.append(b)", None),
    ],
)
def test_an_item_that_was_moved_is_told_from_one_that_was_written(
    place: str, line: str, moved: MovedItem | None, session: Session
) -> None:
    told = session.run.why(place)

    assert (told.source.partition("  #")[0], told.moved) == (line, moved)


def test_the_answer_leads_to_the_item_before_it_moved(session: Session) -> None:
    typed = Typed.at("@exc", session)

    said = typed("why queue[0]")

    assert "queue[0] moved there from index 1 at " in said
    assert "from queue[1]\n" in said
    assert ", then why queue[1]" in said
    assert "note:" not in said
