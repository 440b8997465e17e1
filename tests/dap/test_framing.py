"""Messages in a stream of bytes: whatever else is in it, each whole message is found, and the rest is reported once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.dap.wire.framing import MOST_BYTES, MOST_HEADER, DamagedMessage, MessageDecoder, encoded_message

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=4,
)
MESSAGES = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)
GARBAGE = st.one_of(
    st.binary(min_size=1, max_size=60),
    st.sampled_from(
        [
            b"Content-Length",
            b"Content-Length: \r\n\r\n",
            b"Content-Length: -4\r\n\r\n{}",
            b"Content-Length: 1000000000\r\n\r\n",
            b"Content-Length: 99999999999999999999999\r\n\r\n",
            b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
            b'Content-Length: 9\r\n\r\n{"a": 1}',
            b"Content-Length: 2\r\n\r\n[]",
            b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        ]
    ),
)


def fed(data: bytes, size: int = 0) -> list[dict[str, Any] | DamagedMessage]:
    decoder = MessageDecoder()
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    return [each for piece in pieces for each in decoder.feed(piece)]


def messages_in(data: bytes, size: int = 0) -> list[dict[str, Any]]:
    return [each for each in fed(data, size) if isinstance(each, dict)]


@settings(deadline=None)
@given(st.lists(MESSAGES, max_size=5), st.integers(1, 50))
def test_messages_come_out_as_they_went_in_however_they_are_cut(messages: list[dict[str, Any]], size: int) -> None:
    data = b"".join(map(encoded_message, messages))

    assert fed(data, size) == messages


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(GARBAGE, MESSAGES), min_size=1, max_size=4), st.integers(0, 20))
def test_a_message_behind_garbage_is_found(pairs: list[tuple[bytes, dict[str, Any]]], size: int) -> None:
    # A cut message can take what follows for its own body, if that happens to be as long: it ends at a header.
    data = b"".join(garbage + b"\x00" + encoded_message(message) for garbage, message in pairs)

    found = messages_in(data, size)

    assert found[-1] == pairs[-1][1]
    assert [each for each in found if each in [message for _, message in pairs]] == [message for _, message in pairs]


@settings(max_examples=150, deadline=None)
@given(st.lists(GARBAGE, max_size=12), st.integers(0, 30))
def test_nothing_that_is_sent_raises(pieces: list[bytes], size: int) -> None:
    for each in fed(b"".join(pieces), size):
        assert isinstance(each, dict | DamagedMessage)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=4000), max_size=20))
def test_garbage_is_not_kept(pieces: list[bytes]) -> None:
    decoder = MessageDecoder()

    for each in pieces:
        list(decoder.feed(each.replace(b":", b"")))

    assert len(decoder._bytes) <= MOST_HEADER


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"Content-Length: x\r\n\r\n", "digits"),
        (b"Content-Type: text\r\n\r\n", "digits"),
        (b"Content-Length: %d\r\n\r\n" % (MOST_BYTES + 1), "16,777,216 bytes"),
        (b"Content-Length: 2\r\n\r\n\xff\xff", "UTF-8"),
        (b"Content-Length: 2\r\n\r\n{x", "JSON"),
        (b"Content-Length: 2\r\n\r\n[]", "JSON object"),
        (b"Content-Length: 100000\r\n\r\n" + b"[" * 100000, "nested"),
        (b"x" * (MOST_HEADER + 1), "No header"),
    ],
)
def test_what_is_wrong_is_reported_once(data: bytes, reason: str) -> None:
    (found,) = fed(data + b"more of it")

    assert isinstance(found, DamagedMessage)
    assert reason in found.reason


def test_a_message_that_was_cut_short_ends_where_the_next_one_begins() -> None:
    damage, message = fed(b'Content-Length: 500\r\n\r\n{"seq": 1' + encoded_message({"seq": 2}))

    assert isinstance(damage, DamagedMessage)
    assert message == {"seq": 2}


def test_headers_may_have_other_fields_in_any_case_and_messages_a_line_end_behind_them() -> None:
    body = json.dumps({"a": "ü"}, ensure_ascii=False).encode()
    head = b"Content-Type: application/json\r\ncontent-length: %d\r\nX: y\r\n\r\n" % len(body)

    assert fed(head + body + b"\r\n" + head + body, 7) == [{"a": "ü"}] * 2


def test_the_end_in_the_middle_of_a_message_is_reported() -> None:
    decoder = MessageDecoder()
    list(decoder.feed(b"Content-Length: 10\r\n\r\n{"))

    left = decoder.end()

    assert left is not None and "ended" in left.reason
    assert MessageDecoder().end() is None
