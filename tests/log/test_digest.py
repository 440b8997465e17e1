"""The keyed hash of long data, and the marks made from it."""

import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.log.sealed.origin import OriginMarker
from replaydbg.native._digest import digest

CHUNK = 4096
KEY = bytes(range(256)) * (CHUNK // 256)
_WORD = 1 << 64


def _reference(key: bytes, data: bytes) -> bytes:
    """NH as RFC 4418 defines it, with words of 64 bits, in Python."""
    keys = struct.unpack(f"<{CHUNK // 8}Q", key)
    hashes = []
    for at in range(0, len(data), CHUNK):
        words = struct.unpack(f"<{CHUNK // 8}Q", data[at : at + CHUNK].ljust(CHUNK, b"\0"))
        terms = (
            ((words[i] + keys[i]) % _WORD) * ((words[i + 1] + keys[i + 1]) % _WORD) for i in range(0, len(words), 2)
        )
        hashes.append((sum(terms) % (1 << 128)).to_bytes(16, "little"))
    return b"".join(hashes)


_LONG = st.integers(0, 3 * CHUNK + 1).flatmap(
    lambda size: st.integers(0, 2**32).map(lambda seed: (seed.to_bytes(8, "little") * (size // 8 + 1))[:size])
)


@given(_LONG | st.binary(max_size=200), st.binary(min_size=1, max_size=CHUNK))
def test_it_is_nh(data: bytes, key: bytes) -> None:
    whole = (key * (CHUNK // len(key) + 1))[:CHUNK]

    assert digest(whole, data) == _reference(whole, data)


def test_carries_are_kept() -> None:
    data = b"\xff" * CHUNK

    assert digest(data, data) == _reference(data, data)
    assert digest(bytes(CHUNK), data) == _reference(bytes(CHUNK), data)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK + 1])
def test_a_key_has_the_size_of_a_chunk(size: int) -> None:
    with pytest.raises(ValueError, match=f"4096 bytes .got {size}."):
        digest(bytes(size), b"data")


def test_no_data_has_no_hash() -> None:
    assert digest(KEY, b"") == b""
    assert digest(KEY, memoryview(b"")) == b""


def _marked(pieces: list[bytes], key: bytes = b"k" * 32, **how: bytes) -> bytes:
    marker = OriginMarker(key, is_long=True, person=how.get("person", b""))
    assert marker.is_long
    for piece in pieces:
        marker.add(piece)
    return marker.mark()


@given(st.lists(_LONG, max_size=6), st.data())
def test_a_mark_does_not_depend_on_the_pieces(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(pieces)
    at = data.draw(st.integers(0, len(whole)))

    assert _marked(pieces) == _marked([whole]) == _marked([whole[:at], b"", whole[at:]])


def test_a_copy_goes_its_own_way() -> None:
    marker = OriginMarker(b"k" * 32, is_long=True)
    marker.add(b"x" * 5000)
    copy = marker.copy()
    copy.add(b"y")

    assert marker.mark() == _marked([b"x" * 5000])
    assert copy.mark() == _marked([b"x" * 5000 + b"y"])


@given(st.integers(1, 2 * CHUNK + 9), st.data())
def test_each_bit_counts(size: int, data: st.DataObject) -> None:
    content = bytearray(os.urandom(size))
    before = _marked([bytes(content)])
    content[data.draw(st.integers(0, size - 1))] ^= 1 << data.draw(st.integers(0, 7))

    assert _marked([bytes(content)]) != before


def test_zeros_at_the_end_and_the_order_of_chunks_count() -> None:
    """The hash itself fills the last chunk with zeros, and hashes equal chunks alike."""
    one, two = b"1" * CHUNK, b"2" * CHUNK

    assert len({_marked([data]) for data in (b"", b"\0", bytes(CHUNK), one, one + b"\0", one + two, two + one)}) == 7


def test_marks_with_other_keys_or_for_other_things_are_different() -> None:
    data = b"d" * 10_000
    short = OriginMarker(b"k" * 32)
    short.add(data)

    marks = [_marked([data]), _marked([data], key=b"K" * 32), _marked([data], person=b"something else"), short.mark()]

    assert len(set(marks)) == 4
