"""Words are masked wherever they are, also across pieces, and come back exactly."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.native._words import find
from replaydbg.secrets.forms import forms_of
from replaydbg.secrets.masks import Masks
from replaydbg.secrets.patches import patched
from replaydbg.secrets.secret_values import is_secret_in_text, is_secret_value


def masked(words: list[bytes], pieces: list[bytes]) -> tuple[bytes, Masks, list[bytes]]:
    masks = Masks(words)
    found = list(masks.pieces("log", pieces))
    assert [len(each) for each in found] == [len(each) for each in pieces]
    return b"".join(found), masks, found


def test_a_word_is_masked() -> None:
    found, masks, pieces = masked([b"hunter22"], [b"a hunter22, and hunter22", b" more"])

    assert found == b"a ********, and ******** more"
    assert masks.patches == {"log": [(2, b"hunter22"), (16, b"hunter22")]}
    assert b"".join(patched(pieces, masks.patches["log"])) == b"a hunter22, and hunter22 more"


def test_nothing_to_mask_keeps_the_pieces() -> None:
    pieces = [b"one", b"two"]
    assert all(a is b for a, b in zip(Masks([b"hunter22"]).pieces("log", pieces), pieces, strict=True))
    assert all(a is b for a, b in zip(Masks([]).pieces("log", pieces), pieces, strict=True))


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_inverse(seed: int) -> None:
    draw = Random(seed)
    words = [bytes(draw.choices(b"ab", k=draw.randint(4, 9))) for _ in range(draw.randint(1, 4))]
    data = bytes(draw.choices(b"abc", k=draw.randint(0, 200)))
    pieces, at = [], 0
    while at < len(data):
        size = draw.randint(1, 40)
        pieces.append(data[at : at + size])
        at += size
    found, masks, parts = masked(words, pieces)

    expected = bytearray(data)
    for word in words:
        for match in re.finditer(b"(?=%s)" % re.escape(word), data):
            expected[match.start() : match.start() + len(word)] = b"*" * len(word)
    assert found == bytes(expected)
    assert b"".join(patched(parts, masks.patches.get("log", []))) == data
    start = draw.randint(0, len(data))
    assert b"".join(patched([found[start:]], masks.patches.get("log", []), start)) == data[start:]


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_words_are_found_as_by_a_slow_search(seed: int) -> None:
    draw = Random(seed)
    words = tuple(bytes(draw.choices(b"ab\0\xff", k=draw.randint(4, 7))) for _ in range(draw.randint(0, 30)))
    data = bytes(draw.choices(b"ab\0\xff", k=draw.randint(0, 100)))
    expected = [
        (at, number) for at in range(len(data)) for number, word in enumerate(words) if data.startswith(word, at)
    ]

    assert sorted(find(words, data)) == sorted(expected)
    assert [at for at, _ in find(words, data)] == sorted(at for at, _ in expected)


@pytest.mark.parametrize("words", [(b"abc",), ("abcd",), (b"",)])
def test_words_that_are_none(words: tuple[bytes, ...]) -> None:
    with pytest.raises(ValueError, match="a word is bytes, at least 4 of them"):
        find(words, b"data")


@pytest.mark.parametrize("value", [b"line])", b"self.name,", b"options)", b"token_of);"])
def test_code_is_no_secret(value: bytes) -> None:
    assert not is_secret_in_text(value)
    assert is_secret_in_text(b"9" + value)
    assert is_secret_value(value)


def test_a_secret_that_is_not_valid_text_has_forms() -> None:
    assert b"%\x80abcdef" in forms_of([b"%\x80abcdef"])
