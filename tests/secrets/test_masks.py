"""Words are masked wherever they are, also across pieces, and come back exactly."""

from __future__ import annotations

import base64
import html
import json
import quopri
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from random import Random
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.native._words import find
from replaydbg.record.hiding import masks_of
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


WRITTEN: dict[str, Callable[[str], bytes]] = {
    "JSON of PHP": lambda text: json.dumps(text).replace("/", "\\/").encode(),
    "shell": lambda text: shlex.quote(text).encode(),
    "SQL": lambda text: text.replace("'", "''").encode(),
    "CSV": lambda text: text.replace('"', '""').encode(),
    "HTML": lambda text: html.escape(text).encode(),
    "HTML in decimal": lambda text: html.escape(text).replace("&#x27;", "&#39;").encode(),
    "HTML 5": lambda text: html.escape(text).replace("&#x27;", "&apos;").encode(),
    "XML of ASCII": lambda text: text.encode("ascii", "xmlcharrefreplace"),
    "repr of repr": lambda text: repr(repr(text)).encode(),
    "ascii": lambda text: ascii(text).encode(),
    "URL twice": lambda text: quote(quote(text, safe=""), safe="").encode(),
    "URL of Latin-1": lambda text: quote(text.encode("latin-1"), safe="").encode(),
    "quoted-printable": lambda text: quopri.encodestring(text.encode()),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")),
    "base64 of Latin-1": lambda text: base64.b64encode(text.encode("latin-1")),
    "base64 of base64": lambda text: base64.b64encode(base64.b64encode(text.encode())),
    "hexadecimal with blanks": lambda text: text.encode().hex(" ").encode(),
    "hexadecimal with colons": lambda text: text.encode().hex(":").upper().encode(),
    "hexadecimal of UTF-16": lambda text: text.encode("utf-16-le").hex().encode(),
}


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("secret", ["Simple-Pass-word-1234", "Ab/cd+Ef-123'456", 'x"9&Kl-"Pq\'7', "Grün-ß9-Schlüssel"])
def test_other_ways_to_write_a_secret(secret: str, kind: str) -> None:
    written = WRITTEN[kind](secret)
    masked = masks_of({secret.encode()}).masked(b"before " + written + b" behind")

    # What shares characters with its neighbours, and quotes around it, may stay.
    assert masked.count(b"*") >= len(written.strip(b"=\\'\"")) - 2, masked
    assert masked.startswith(b"before ") and masked.endswith(b" behind")


@given(
    data=st.binary(min_size=1, max_size=80),
    words=st.lists(st.binary(min_size=4, max_size=9), max_size=3),
    places=st.lists(st.tuples(st.integers(0, 79), st.integers(1, 30)), max_size=4),
    cuts=st.lists(st.integers(0, 80), max_size=4),
)
def test_places_are_masked_like_words_and_come_back(
    data: bytes, words: list[bytes], places: list[tuple[int, int]], cuts: list[int]
) -> None:
    words = [*words, data[3:8] if len(data) >= 8 else b"none"]
    wanted = [(at, min(at + length, len(data))) for at, length in places if at < len(data)]
    ends = sorted({min(each, len(data)) for each in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(ends)]
    plain = b"".join(Masks(words).pieces("log", pieces))
    masks = Masks(words)
    masks.mask_places("log", wanted)

    found = list(masks.pieces("log", pieces))

    expected = bytearray(plain)
    for start, end in wanted:
        expected[start:end] = b"*" * (end - start)
    assert b"".join(found) == bytes(expected)
    assert [len(each) for each in found] == [len(each) for each in pieces]
    assert b"".join(patched(found, masks.patches.get("log", []))) == data
    starts = [(at, at + len(text)) for at, text in masks.patches.get("log", [])]
    assert all(one[1] <= other[0] for one, other in pairwise(starts))
