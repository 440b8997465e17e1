"""The moment at which output was printed, though it left the program later."""

from array import array
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.first_pass.printed_output import printed
from replaydbg.debugger.session_results import Output
from replaydbg.errors import NoSuchMoment
from tests.harness.recording import record_file

FIXTURES = Path(__file__).parents[2] / "fixtures" / "travel"
STARTS = array("Q", [0, 10, 20, 30])


def test_a_line_of_output_leads_to_the_line_that_printed_it(tmp_path: Path) -> None:
    with Session(record_file(FIXTURES / "prints_into_a_pipe.py", tmp_path)) as session:
        found = []
        for number in range(1, 10):
            here = session.seek(f"@out:{number}")
            assert here.top is not None
            found.append(here.top.line)
        assert found == [7, 7, 7, 7, 7, 12, 13, 14, 17]
        with pytest.raises(NoSuchMoment, match="wrote 9 lines"):
            session.seek("@out:10")


def test_output_until_here(tmp_path: Path) -> None:
    with Session(record_file(FIXTURES / "prints_into_a_pipe.py", tmp_path)) as session:
        whole = b"number 0\nnumber 1\nnumber 2\nnumber 3\nnumber 4\nfirst\nsecond\nab\nwithout an end"
        session.seek("@last")
        assert b"".join(each.data for each in session.run.output(1)) == whole
        session.seek("@out:3")
        assert b"".join(each.data for each in session.run.output(1)) == b"number 0\nnumber 1\n"
        session.next()
        session.next()
        assert b"".join(each.data for each in session.run.output(1)) == b"number 0\nnumber 1\nnumber 2\n"


def test_what_is_printed_may_be_made_by_other_lines(tmp_path: Path) -> None:
    with Session(record_file(FIXTURES / "prints_what_it_asks_for.py", tmp_path)) as session:
        session.seek("@last")
        assert b"".join(each.data for each in session.run.output(1)) == b"asked\n3\n"
        tops = [session.seek(moment).top for moment in ("@out:1", "@out:2")]
        assert [each.line for each in tops if each is not None] == [5, 9]
        # It stands inside the line, about to print: what it called has printed by then.
        assert b"".join(each.data for each in session.run.output(1)) == b"asked\n"


def test_what_is_written_besides_is_known_by_its_leaving() -> None:
    left = [(25, 3, 1, b"a\nb\n"), (28, 3, 1, b"c\n")]
    given = [(5, 1, 1, 5, 1), (15, 1, 1, 14, 1)]
    assert printed([*left, *given], STARTS) == tuple(Output(*each, line=each[0]) for each in left)


def test_what_never_left_is_no_output() -> None:
    given = [(5, 1, 1, 5, 2), (15, 1, 1, 12, 3), (16, 1, 1, 16, 1)]
    assert printed([(25, 3, 1, b"a\nb\n"), *given], STARTS) == (
        Output(5, 1, 1, b"a\n", 5, 2),
        Output(15, 2, 1, b"b\n", 12, 3),
    )


def test_streams_are_in_the_order_of_printing() -> None:
    entries = [(3, 1, 2, b"error\n"), (25, 3, 1, b"one\ntwo\n"), (2, 1, 1, 2, 1), (3, 2, 1, 3, 1), (12, 1, 1, 12, 1)]
    assert [each.data for each in printed(entries, STARTS)] == [b"one\n", b"error\n", b"two\n"]
