"""Values survive encoding and decoding, and invalid bytes are rejected without harm."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.events import values
from replaydbg.events.values import TypeName
from replaydbg.log.coding import encode as codec
from replaydbg.log.coding.codec import decode_value
from replaydbg.log.coding.decode import Cursor, Malformed, Short
from replaydbg.log.coding.encode import encode_value, varint, zigzag

TYPES = (TypeName("time", "struct_time"), TypeName("builtins", "OSError"), TypeName("m", "Outer.Inner"))

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
UINT64 = st.integers(0, (1 << 64) - 1)
TEXT = st.text(st.characters(blacklist_categories=()), max_size=20)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | INT64
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | TEXT
    | st.binary()
    | st.binary().map(bytearray)
    | st.builds(values.StatResult, *[INT64] * 13)
    | st.builds(values.Argument, UINT64)
    | st.builds(values.ContentRef, UINT64, UINT64)
    | st.builds(values.Opaque, TEXT)
    | st.builds(values.Cut, UINT64, st.binary(min_size=8, max_size=8), st.text(max_size=9) | st.binary(max_size=9))
    | st.builds(values.DirectoryEntry, TEXT | st.binary(), TEXT | st.binary())
    | st.builds(values.Buffer, st.booleans())
    | st.builds(values.OpenFile, st.none() | st.integers(0, 1 << 31))
)
HASHABLE = st.none() | st.integers() | TEXT | st.binary() | st.tuples(TEXT, INT64)


def containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values that hold others."""
    several = st.lists(children, max_size=4)
    tuples = several.map(tuple)
    return (
        several
        | tuples
        | st.dictionaries(HASHABLE, children, max_size=4)
        | st.sets(HASHABLE, max_size=4)
        | st.frozensets(HASHABLE, max_size=4)
        | st.builds(values.StructSequence, st.sampled_from(TYPES), tuples)
        | st.builds(values.ExceptionValue, st.sampled_from(TYPES), tuples, st.none() | tuples)
    )


VALUES = st.recursive(LEAVES, containers, max_leaves=12)


def type_id(name: TypeName) -> int:
    """Return the number of a type in TYPES."""
    return TYPES.index(name) + 1


@given(VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    back = decode_value(encode_value(value, type_id), TYPES)

    assert value == back
    assert repr(value) == repr(back) or isinstance(value, (set, frozenset, list, tuple, dict)) or "{" in repr(value)


@pytest.mark.parametrize("value", [0, 1, 63, 64, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, -(2**200), True])
def test_integers_keep_value_and_type_at_every_border(value: int) -> None:
    back = decode_value(encode_value(value))

    assert (type(value), value) == (type(back), back)


def test_small_integers_take_one_byte() -> None:
    assert all(len(encode_value(number)) == 1 for number in range(64))


def test_floats_keep_their_bits() -> None:
    assert math.isnan(decode_value(encode_value(math.nan)))
    assert math.copysign(1, decode_value(encode_value(-0.0))) == -1


def test_lone_surrogates_survive() -> None:
    assert decode_value(encode_value("a\udcff")) == "a\udcff"


def test_the_order_of_a_dict_survives() -> None:
    assert list(decode_value(encode_value({"b": 1, "a": 2}))) == ["b", "a"]


@pytest.mark.parametrize("value", [object(), sys, range(3), type("Text", (str,), {})("x"), {"a": {1: object()}}])
def test_what_is_no_data_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        encode_value(value)


def test_a_type_needs_a_number() -> None:
    with pytest.raises(TypeError, match="number"):
        encode_value(values.StructSequence(TYPES[0], ()))


@given(UINT64)
def test_varints_come_back(number: int) -> None:
    assert Cursor(varint(number)).varint() == number


@given(INT64)
def test_zigzag_comes_back(number: int) -> None:
    assert Cursor(zigzag(number)).zigzag() == number


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_a_varint_has_64_bits(number: int) -> None:
    with pytest.raises(ValueError, match="varint"):
        varint(number)


@pytest.mark.parametrize("data", [b"\xff" * 10 + b"\0", b"\xff" * 9 + b"\x7f", b"\x80" * 11])
def test_a_longer_varint_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed, match="64 bits"):
        Cursor(data).varint()


@given(VALUES, st.data())
def test_a_cut_value_is_never_another_value(value: Any, data: st.DataObject) -> None:
    encoded = encode_value(value, type_id)
    size = data.draw(st.integers(0, len(encoded) - 1))

    with pytest.raises(Short):
        Cursor(encoded[:size], TYPES).value()
    with pytest.raises(Malformed):
        decode_value(encoded[:size], TYPES)


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_malformed(data: bytes) -> None:
    try:
        decode_value(data, TYPES)
    except Malformed as error:
        assert str(error)


@pytest.mark.parametrize("tag", [codec.STR, codec.BYTES, codec.TUPLE, codec.LIST, codec.DICT, codec.SET, codec.BIG_INT])
def test_a_huge_length_is_not_believed(tag: int) -> None:
    with pytest.raises((Short, Malformed)):
        Cursor(bytes((tag,)) + varint(1 << 60)).value()


def test_containers_share_one_budget() -> None:
    """A list of empty lists is a few bytes that would become very many objects."""
    data = encode_value([[None] * 100] * 100)

    with pytest.raises(Malformed, match="elements"):
        Cursor(data, budget=5000).value()


def test_a_text_is_a_level_of_its_own() -> None:
    value: Any = "short"
    for _ in range(codec.MAX_DEPTH):
        value = [value]

    assert decode_value(encode_value(value), TYPES) == value
    with pytest.raises(ValueError, match="nested deeper"):
        encode_value([value])


def test_deep_nesting_is_refused_both_ways() -> None:
    value: list[Any] = []
    for _ in range(codec.MAX_DEPTH + 1):
        value = [value]

    with pytest.raises(ValueError, match="nested"):
        encode_value(value)
    with pytest.raises(Malformed, match="nested"):
        decode_value(bytes((codec.LIST, 1)) * 100_000 + b"\0")


@pytest.mark.parametrize(
    "data",
    [
        bytes((codec.SET, 1, codec.LIST, 0)),
        bytes((codec.DICT, 1, codec.LIST, 0, codec.NONE)),
        bytes((codec.STR, 1, 0xFF)),
        bytes((codec.STRUCT, 9, 0)),
        bytes((codec.EXCEPTION, 1, codec.NONE, codec.NONE)),
        bytes((codec.DIR_ENTRY, codec.NONE, codec.NONE)),
        bytes((codec.CUT, codec.NONE)),
        b"\x3f",
        b"\x80",
        b"\x00\x00",
    ],
)
def test_what_the_format_does_not_allow_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_value(data, TYPES)


def test_the_encoder_is_light() -> None:
    """The launcher loads it before every recorded program."""
    script = "import sys; import replaydbg.log.coding.codec; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, cwd=".")

    assert not {"typing", "dataclasses", "re", "inspect", "enum"} & set(done.stdout.split())
