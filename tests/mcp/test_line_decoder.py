"""Lines as messages: whatever arrives, each damaged line costs itself alone."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.mcp.message_lines import MOST_BYTES, DamagedLine, LineDecoder, encoded_line
from replaydbg.mcp.messages import AgentNotice, AgentRequest, InvalidMessage, message_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def decoded(data: bytes, *cuts: int) -> list[Any]:
    decoder = LineDecoder()
    ends = sorted({0, len(data), *(each for each in cuts if each < len(data))})
    found = [each for at, end in pairwise(ends) for each in decoder.feed(data[at:end])]
    left = decoder.end()
    return [*found, *([left] if left is not None else [])]


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=2), max_size=3), st.lists(st.integers(0, 200)))
def test_messages_arrive_however_the_bytes_are_cut(messages: list[dict[str, Any]], cuts: list[int]) -> None:
    assert decoded(b"".join(map(encoded_line, messages)), *cuts) == messages


@settings(deadline=None)
@given(st.binary(), st.lists(st.integers(0, 50)))
def test_a_message_behind_any_bytes_arrives(garbage: bytes, cuts: list[int]) -> None:
    assert decoded(garbage + b"\n" + encoded_line({"a": 1}), *cuts)[-1] == {"a": 1}


@settings(deadline=None)
@given(JSON)
def test_any_json_is_a_message_or_is_answered_with_an_error(value: object) -> None:
    found = message_of(json.loads(json.dumps(value)))

    assert found is None or isinstance(found, (AgentRequest, AgentNotice, InvalidMessage))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "must be a line of JSON"),
        (b"\xff\xfe", "must be UTF-8"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "must be a line of JSON"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_not_json_is_reported_with_the_reason(line: bytes, reason: str) -> None:
    (found, following) = decoded(line + b"\n{}\n")

    assert isinstance(found, DamagedLine)
    assert reason in found.reason
    assert following == {}


def test_a_line_that_is_too_long_is_reported_once_and_not_kept() -> None:
    decoder, piece = LineDecoder(), b"x" * (1 << 20)

    found = [each for _ in range(3 * MOST_BYTES >> 20) for each in decoder.feed(piece)]
    found += decoder.feed(b'"\n{}\n')

    assert [type(each) for each in found] == [DamagedLine, dict]


def test_a_line_that_is_cut_short_is_reported_at_the_end() -> None:
    (found,) = decoded(b'{"jsonrpc": "2.0"')

    assert found.reason == "The stream ended in the middle of a line."


def test_empty_lines_and_line_ends_of_other_systems_are_nothing() -> None:
    assert decoded(b"\n\r\n  \n{}\r\n") == [{}]
