"""The same planted bugs with the tools of Undo's published server for agents, played at the prompt.

These tools step: the end of the run, the stack, values, the last write of a value, back over a line, back into a call.
Each row stands for one call of a tool, with the words of the prompt that do the same. The numbers are in
docs/explanation/design/editors.md; what an agent would really ask, nobody has measured.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness.recording import record_failure, record_file
from tests.harness.typed import Typed
from tests.mcp.test_planted_bugs import BUGS, FIXTURES, MOST_CALLS, steps_in_page

Steps = list[tuple[str, list[str]]]

BEGIN: Steps = [("ugo_end", []), ("backtrace", ["where"])]

STALE_PRICE: Steps = [
    *BEGIN,
    ("print", ["p order.total, expected, order.currency"]),
    ("last_value", ["last order.total"]),
    ("reverse_step_into_current_line", ["step", "advance 17"]),
    ("last_value", ["last self.known[key]"]),
    ("print", ["p key, currency"]),
    ("last_value", ["last key"]),
]
SWAPPED_COLUMNS: Steps = [
    *BEGIN,
    ("print", ["p summary"]),
    ("last_value", ["last summary"]),
    ("reverse_step_into_current_line", ["step", "advance 32"]),
    ("last_value", ["last owed"]),
    ("reverse_step_into_current_line", ["step"]),
    ("print", ["p items"]),
    ("last_value", ['last items[0]["gross"]']),
    ("last_value", ["last gross"]),
]
SEAT_SOLD_TWICE: Steps = [
    *BEGIN,
    ("print", ["p buyers"]),
    ("last_value", ["last hall.sold[3]"]),  # ann, in `buy`
    ("print", ["p name, seat in hall.free"]),
    ("reverse_next", ["reverse-next"]),
    ("print", ["p name, seat in hall.free"]),  # it was not free any more when she took it
    ("last_value", ["last hall.free"]),  # bob took it
    ("print", ["p name"]),
    ("reverse_next", ["reverse-next"]),  # the await, in which she found it free
]


@pytest.mark.parametrize(
    ("name", "steps"),
    [("stale_price", STALE_PRICE), ("swapped_columns", SWAPPED_COLUMNS), ("seat_sold_twice", SEAT_SOLD_TWICE)],
)
def test_steps_lead_to_the_bug_as_well(name: str, steps: Steps, tmp_path: Path) -> None:
    program = FIXTURES / "planted" / f"{name}.py"
    with Session(record_file(program, tmp_path, status=1)) as session:
        typed = Typed(session)
        for _, lines in steps:
            typed(*lines)
            assert not typed.prompt.has_failed, lines

        assert session.source_line(str(program), session.here.stack[0].line) == BUGS[name]

    assert len(steps) == steps_in_page(name)


def test_no_step_finds_where_a_sum_went_wrong(tmp_path: Path) -> None:
    """Each of the writes behind the wrong one would be a step."""
    program = FIXTURES / "planted" / "lost_cent.py"
    with Session(record_file(program, tmp_path, status=1)) as session:
        wrong = next(each for each in session.run.log(str(program), 11, "amount % parts") if each.text == "1")
        writes = [each for line in (15, 17) for each in session.run.log(str(program), line, "accounts")]
        behind = [each for each in writes if each.count > wrong.count]

    assert len(BEGIN) + len(behind) > steps_in_page("lost_cent") >= 1000


def test_each_payment_behind_the_lost_one_is_a_step(tmp_path: Path) -> None:
    with Session(record_failure(FIXTURES / "races" / "till.py", tmp_path)) as session:
        typed, steps = Typed(session), [*BEGIN]
        while True:
            steps.append(("last_value", ["last till.cents" if len(steps) == len(BEGIN) else "last self.cents"]))
            before, _, after = typed(*steps[-1][1]).split("\n")[0].partition(": ")[2].partition(" -> ")
            if int(after) <= int(before):
                break
        steps.append(("last_value", ["last before"]))
        typed(*steps[-1][1])

        assert session.source_line(str(FIXTURES / "races" / "till.py"), session.here.stack[0].line) == BUGS["till"]

    assert len(steps) > MOST_CALLS  # how many, depends on how the threads took turns: 16 on CPython 3.11
