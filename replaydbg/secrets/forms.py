"""The forms in which a secret may be written: as text in several encodings, escaped, in base64 or in hexadecimal."""

from __future__ import annotations

import base64
import html
import json
import quopri
import re
import string
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote, quote_plus

from replaydbg.classes import NamedTuple
from replaydbg.secrets.secret_parts import with_parts
from replaydbg.secrets.secret_values import SHORTEST


def forms_of(secrets: Iterable[bytes]) -> set[bytes]:
    """Return the forms in which secrets and their parts may be written elsewhere, each of at least SHORTEST bytes."""
    return {each for secret in with_parts(secrets) for each in _forms(secret) if len(each) >= SHORTEST}


def form_list(secret: bytes) -> list[bytes]:
    """Return all forms of a secret, in an order that is the same for its pseudonym."""
    return list(_forms(secret))


class Base64Form(NamedTuple):
    """A secret in base64 at one alignment, with its bits in the characters that it shares with what is around it."""

    form: bytes
    """The characters that it has alone."""
    alphabet: bytes
    before: int
    """Its first bits, which are the last ones of the character before."""
    before_bits: int
    """How many; 0: the character before is not shared."""
    after: int
    """Its last bits, at their place in the character after, whose first ones they are."""
    after_bits: int
    """How many; 0: the character after is not shared."""


def base64_forms(secret: bytes) -> list[Base64Form]:
    """Return the forms in base64, in an order that is the same for its pseudonym."""
    return [
        _base64_form(plain, shift, alphabet)
        for plain in _plain(secret)
        for shift in range(3)
        for alphabet in _ALPHABETS
    ]


def _base64_form(plain: bytes, shift: int, alphabet: bytes) -> Base64Form:
    encode = base64.standard_b64encode if alphabet is _ALPHABETS[0] else base64.urlsafe_b64encode
    text = encode(bytes(shift) + plain)
    first, last = (8 * shift + 5) // 6, (8 * (shift + len(plain))) // 6
    before_bits, after_bits = 6 * first - 8 * shift, 8 * (shift + len(plain)) - 6 * last
    before = alphabet.index(text[first - 1]) if before_bits else 0
    after = alphabet.index(text[last]) if after_bits else 0
    return Base64Form(text[first:last], alphabet, before, before_bits, after, after_bits)


_ALPHABETS = tuple(
    (string.ascii_uppercase + string.ascii_lowercase + string.digits + each).encode() for each in ("+/", "-_")
)


def _forms(secret: bytes) -> Iterator[bytes]:
    for plain in _plain(secret):
        yield plain
        yield from _encoded(plain)
        text = plain.decode("utf-8", "surrogateescape")
        for escaped in _escaped(text):
            yield escaped.encode("utf-8", "surrogateescape")
        for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"):
            try:
                data = text.encode(encoding, "surrogatepass" if "utf" in encoding else "strict")
            except UnicodeEncodeError:
                continue
            yield data
            if encoding in ("utf-16-le", "latin-1"):  # as of PowerShell, and of web pages of before
                yield from _encoded(data)
                yield quote(data, safe="").encode()
        # What holds it in base64 may be in base64 itself.
        yield from _base64(base64.standard_b64encode(plain))


def _plain(secret: bytes) -> Iterator[bytes]:
    """Yield the secret itself, and what it stands for if it is base64 (of a user and a password) or escaped."""
    yield secret
    text = secret.decode("utf-8", "surrogateescape")
    if "%" in text:
        from urllib.parse import unquote_to_bytes

        yield unquote_to_bytes(secret)
    if "\\" in text:
        with suppress(ValueError):
            yield str(json.loads(f'"{text}"')).encode("utf-8", "surrogatepass")
    if len(secret) % 4 == 0:
        try:
            decoded = base64.b64decode(secret, validate=True)
        except ValueError:
            return
        _, colon, password = decoded.partition(b":")
        if colon and decoded.isascii() and len(password) >= SHORTEST:
            yield password


def _escaped(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    raw = text.encode("utf-8", "surrogateescape")
    yield quote(raw)
    yield quote(raw, safe="")
    yield quote_plus(raw)
    yield quote(raw, safe="").lower()
    yield quote(quote(raw, safe=""), safe="")
    yield html.escape(text)
    yield html.escape(text).replace("&#x27;", "&#39;")
    yield html.escape(text).replace("&#x27;", "&apos;")
    yield json.dumps(text)[1:-1].replace("/", "\\/")  # as PHP and JavaScript write it
    yield ascii(text)[1:-1]
    yield repr(repr(text)[1:-1])[1:-1]
    # Within quotes of its own kind: doubled, as in SQL and CSV; escaped; or as shlex.quote() does it.
    for mark in ("'", '"'):
        for instead in (mark * 2, f"\\{mark}"):
            yield text.replace(mark, instead)
    yield text.replace("'", "'\"'\"'")
    yield text.encode("ascii", "xmlcharrefreplace").decode("ascii")
    yield "".join(each if each.isascii() else f"&#x{ord(each):x};" for each in text)
    yield quopri.encodestring(raw).decode("ascii")


def _encoded(plain: bytes) -> Iterator[bytes]:
    for digits in (plain.hex(), plain.hex().upper()):
        yield digits.encode()
        for separator in (" ", ":", "-"):
            yield separator.join(re.findall("..", digits)).encode()
    yield repr(plain)[2:-1].encode()
    yield from _base64(plain)


def _base64(plain: bytes) -> Iterator[bytes]:
    for shift in range(3):
        # What comes before and after shares characters with the secret's ends: only those in between are certain.
        for alphabet in _ALPHABETS:
            yield _base64_form(plain, shift, alphabet).form
