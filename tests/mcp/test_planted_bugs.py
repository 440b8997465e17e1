"""A scripted agent finds five planted bugs, each within ten questions, from the answers alone.

It reads the answers as an agent does, and every name and moment that it asks about was in an earlier answer. The number
of questions is in docs/explanation/design/editors.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.detective import Detective, moment_in
from tests.harness.mcp_client import McpClient, lines_of
from tests.harness.recording import record_failure, record_file
from tests.harness.replay_cases import Case, cases

FIXTURES = Path(__file__).parents[2] / "fixtures"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "design" / "editors.md"
MOST_CALLS = 10


BUGS = {
    "stale_price": "key = article",  # the currency is not in the key
    "swapped_columns": "name, gross, net = row",  # net comes first
    "seat_sold_twice": "receipt = await pay(name)",  # the seat is still free meanwhile
    "lost_cent": "return [each] * parts",  # the rest of the division is lost
    "till": "before = self.cents",  # another thread may pay in before this one does
}
"""The line of each program that is wrong, for the tests alone."""


def in_page(name: str, column: int = 1) -> int:
    """Return how many questions the design page says that a bug took."""
    found = re.search(rf"^\| `{name}` \|.*?\| ([\d,]+) \| [^|\d]*([\d,]+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert found is not None, name
    return int(found[column].replace(",", ""))


def steps_in_page(name: str) -> int:
    """Return how many steps the design page says that it takes with the tools of Undo's server."""
    return in_page(name, 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("planted"))
def test_planted_bugs_replay(case: Case) -> None:
    case.check()


Ask = Callable[[str], Detective]


@pytest.fixture
def detective(client: McpClient, tmp_path: Path) -> Ask:
    """Records a planted bug, and returns the agent that is to find it."""

    def start(name: str) -> Detective:
        return Detective(client, str(record_file(FIXTURES / "planted" / f"{name}.py", tmp_path, status=1)))

    return start


def test_a_stale_price_leads_to_the_key_of_the_cache(detective: Ask) -> None:
    agent = detective("stale_price")

    failed = agent.ask("failure")  # order 37: 27.0 JPY, where 4320.0 was expected
    cached = agent.follow(failed, "why", "self.known[key]")
    there = agent.ask("look", expressions=["key", "currency"], at=cached["at"])
    agent.ask("why", expression="key", at=cached["at"])

    assert "  after   'JPY'" in failed["recorded"]["write of order.currency"]
    assert there["recorded"]["values"] == ["key = 'article-17'", "currency = 'EUR'"]
    assert agent.has_named(BUGS["stale_price"])
    assert agent.calls == in_page("stale_price") <= MOST_CALLS


def test_a_negative_tax_leads_to_the_columns_of_a_file(detective: Ask) -> None:
    agent = detective("swapped_columns")

    failed = agent.ask("failure")
    summed = agent.follow(failed, "why", "owed")  # sum(item["gross"] - item["net"] for item in items)
    item = agent.ask("why", expression='items[0]["gross"]', at=summed["at"])
    agent.ask("why", expression="gross", at=item["at"])
    row = agent.follow(agent.answers[-1], "why", "row")

    assert agent.has_named(BUGS["swapped_columns"])
    assert any("['bolt', '100', '119']" in each for each in lines_of(row))
    assert agent.calls == in_page("swapped_columns") <= MOST_CALLS


def test_a_seat_that_was_sold_twice_leads_to_the_await_between_look_and_take(detective: Ask) -> None:
    agent = detective("seat_sold_twice")

    failed = agent.ask("failure")  # buyers: bob and ann, both appended in `buy`
    bought = agent.ask("why", expression="buyers", at=failed["at"])
    asked = _line_with(bought["recorded"]["source"], "if seat not in hall.free")
    taken = _line_with(bought["recorded"]["source"], "hall.free.discard(seat)")
    looks = agent.ask("log", place=f"seat_sold_twice.py:{asked}", expression="(name, seat in hall.free)")
    takes = agent.ask("log", place=f"seat_sold_twice.py:{taken}", expression="(name, seat in hall.free)")

    first = {name: _moment_of(looks["recorded"]["printed"], f"('{name}', True)") for name in ("ann", "bob")}
    assert max(first.values()) < _moment_of(takes["recorded"]["printed"], "('bob', True)")
    assert _moment_of(takes["recorded"]["printed"], "('ann', False)")
    assert asked < _line_with(bought["recorded"]["source"], BUGS["seat_sold_twice"]) < taken
    assert agent.calls == in_page("seat_sold_twice") <= MOST_CALLS


def test_a_lost_cent_leads_to_the_division_that_loses_it(detective: Ask) -> None:
    agent = detective("lost_cent")

    failed = agent.ask("failure")
    found = agent.follow(failed, "bisect")  # from this transfer on, the sum was never right again
    seen = agent.follow(found, "look")  # amount = 9, for two takers
    line = _line_with(seen["recorded"]["source"], BUGS["lost_cent"])
    lost = agent.ask(
        "log", place=f"lost_cent.py:{line}", expression="amount - parts * each", condition="amount % parts"
    )

    assert [each.split()[-1] for each in lost["recorded"]["printed"]] == ["1"]
    assert agent.calls == in_page("lost_cent") <= MOST_CALLS


@pytest.mark.slow
def test_missing_payments_lead_to_two_threads_in_one_till(client: McpClient, tmp_path: Path) -> None:
    agent = Detective(client, str(record_failure(FIXTURES / "races" / "till.py", tmp_path)))

    failed = agent.ask("failure")  # till.cents was written from `before`
    changes = agent.follow(failed, "watch", "till.cents")["recorded"]["changes"]
    values = [int(each.split()[-1]) for each in changes]
    lost = next(at for at in range(1, len(values)) if values[at] <= values[at - 1])
    before = agent.ask("why", expression="before", at=moment_in(changes[lost]))

    # It was read in one thread before the other one paid in, and written afterwards.
    (read,) = [_key(each) for each in (before["at"],)]
    between = [each for each in changes[:lost] if read < _key(moment_in(each))]
    assert {_thread(each) for each in between} - {_thread(changes[lost])}
    assert agent.has_named(BUGS["till"])
    assert agent.calls == in_page("till") <= MOST_CALLS


def _line_with(source: list[str], text: str) -> int:
    """Return the number of the line of a source topic that has a text."""
    return next(int(found[1]) for each in source if text in each and (found := re.match(r"(?:->)?\s+(\d+) ", each)))


def _key(moment: str) -> tuple[int, int]:
    event, _, step = moment.partition(":")
    return int(event), int(step.partition(".")[0])


def _moment_of(lines: list[str], text: str) -> tuple[int, int]:
    """Return the moment of the last line with a text."""
    return _key(moment_in([each for each in lines if text in each][-1]))


def _thread(line: str) -> str:
    found = re.search(r"thread (\d+)", line)
    assert found is not None, line
    return found[1]
