"""A recording may contain anything: whatever values its events have, the resources can be computed and shown."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.events.records import Event, Site
from replaydbg.events.values import ContentRef, ExceptionValue, OpenFile, StatResult, StructSequence, TypeName, Value
from replaydbg.render.json_data.resources_json import resources_facts
from replaydbg.render.resources_text import resources_tables
from replaydbg.render.tables import drawn
from replaydbg.resources.follow import ACTIONS, FAILED_ACTIONS, apply_event
from replaydbg.resources.frozen import frozen
from replaydbg.resources.process_state import ProcessState

# Decimal digits of the longest one cannot be printed: `int()` refuses more than 4,300.
_NUMBERS = (
    st.integers(-3, 12) | st.just(0).map(lambda _: 10**5000) | st.sampled_from([1 << 20, 1 << 31, 1 << 64, -(1 << 70)])
)
_PATHS = st.sampled_from(["a", "/b", "..", "", "\0", b"\xff", "/dev/null", "a/b", "\udc80"])
_STAT = st.builds(lambda mode, size: StatResult(mode, 1, 1, 1, 0, 0, size, 0, 0, 0, 0, 0, 0), _NUMBERS, _NUMBERS)
_ERROR = st.builds(lambda number: ExceptionValue(TypeName("builtins", "OSError"), (), (number, "")), _NUMBERS)
_ATOMS: st.SearchStrategy[Any] = st.one_of(
    _NUMBERS,
    _NUMBERS,
    _PATHS,
    st.none() | st.booleans() | st.floats(),
    st.binary(max_size=40),
    st.builds(OpenFile, st.integers(-1, 9) | st.none()),
    _STAT,
    _ERROR,
    st.builds(ContentRef, st.just(0), _NUMBERS),
)
_VALUES = st.recursive(
    _ATOMS,
    lambda inner: (
        st.tuples(inner, inner)
        | st.lists(inner, max_size=3)
        | st.builds(lambda each: StructSequence(TypeName("os", "x"), each), st.tuples(*[_NUMBERS] * 5))
    ),
    max_leaves=6,
)
_KEYWORDS = st.dictionaries(
    st.sampled_from(["dir_fd", "flags", "path", "offset", "fd", "file_actions"]), _VALUES, max_size=2
)
_ARGUMENTS = st.builds(
    lambda plain, more: (*plain, more) if more else tuple(plain), st.lists(_VALUES, max_size=6), _KEYWORDS
)


@st.composite
def _events(draw: st.DrawFn) -> Event:
    raised = draw(st.booleans())
    gate = draw(st.sampled_from(sorted(FAILED_ACTIONS if raised else ACTIONS)))
    outcome: Value = draw(_VALUES)
    site = Site(gate, draw(st.sampled_from([None, "a.py"])), "socket.__repr__", 1, 0)
    return Event(1, 0, site, draw(_ARGUMENTS | st.none()), raised, outcome, None, None, 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(_events(), max_size=12))
def test_any_values(events: list[Event]) -> None:
    state = ProcessState("/somewhere", "")

    for number, event in enumerate(events, 1):
        apply_event(state, Event(number, 0, event.site, event.arguments, event.raised, event.outcome, None, None, 0))
    found = frozen(state, (), len(events), 0)

    json.dumps(resources_facts(found))
    drawn(resources_tables(found, "/"))
