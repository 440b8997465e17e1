"""`why` names only origins that a data-flow reference confirms, and all of them where it claims completeness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Moment, Origin
from replaydbg.errors import UsageError
from replaydbg.events.show import show_call
from replaydbg.render.texts import events_of
from tests.harness.recording import record_file
from tests.harness.taint import OUTSIDE, Reference
from tests.harness.tainted_programs import Writer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

QUESTIONS = 12
"""Per program."""


class Followed:
    """Asks `why` repeatedly, until only constants and events are left."""

    def __init__(self, session: Session) -> None:
        self._session = session
        events = events_of(session, 1, session.index.events)
        own = [each.number for each in events if any(name in show_call(each) for name in OUTSIDE)]
        first = session.index.moment(session.first_own).event
        numbers = [number for number in own if number > first]
        self._labels = {number: f"event {at}" for at, number in enumerate(numbers, 1)}
        self._known: dict[tuple[str, str], tuple[frozenset[str], str]] = {}

    def labels(self, expression: str, moment: str | Moment) -> tuple[frozenset[str], str]:
        """Return the labels of all origins, and what is unknown about them."""
        key = (expression, str(moment))
        if key not in self._known:
            self._known[key] = (frozenset(), "it comes from itself")
            self._known[key] = self._asked(expression, moment)
        return self._known[key]

    def _asked(self, expression: str, moment: str | Moment) -> tuple[frozenset[str], str]:
        self._session.seek(moment)
        try:
            told = self._session.run.why(expression)
        except UsageError as error:
            return frozenset(), str(error)
        if told.moment is None:
            return frozenset(), "it was not written"
        unknown = [told.unknown, told.note]
        labels: set[str] = set()
        for found, missing in self._of(told.origins, told.moment):
            labels |= found
            unknown.append(missing)
        return frozenset(labels), next((each for each in unknown if each), "")

    def _of(self, origins: Sequence[Origin], moment: Moment) -> Iterator[tuple[frozenset[str], str]]:
        for each in origins:
            yield frozenset(self._labels[number] for number in each.events if number in self._labels), ""
            if each.kind == "constant":
                yield frozenset({f"constant {each.text}"}), ""
            elif each.kind == "place" and each.text not in ("yes", "no"):
                yield self.labels(each.text, moment)
            elif each.kind == "place":
                yield frozenset({"constant 1" if each.text == "yes" else "constant 0"}), ""
            yield from self._of(each.parts, each.moment or moment)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_named_is_an_origin_and_what_is_claimed_to_be_known_is_all(tmp_path: Path, seed: int) -> None:
    writer = Writer(seed)
    program = tmp_path / "flows.py"
    program.write_text(writer.program())
    reference = Reference()
    reference.run(program.read_text())

    with Session(record_file(program, tmp_path)) as session:
        followed = Followed(session)
        certain = 0
        asked = writer.variables()[:QUESTIONS]
        for expression in asked:
            named, unknown = followed.labels(expression, "@end")
            value = reference.value(expression)
            context = (expression, unknown, sorted(named), sorted(value.confirmed()), program.read_text())
            assert named <= value.confirmed(), context
            if not unknown:
                certain += 1
                assert value.all_labels() <= named, context

    assert certain >= len(asked) // 3, f"only {certain} of {len(asked)} were followed to their ends"
