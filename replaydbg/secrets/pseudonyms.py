"""Pseudonyms: texts of the same length and of the same classes of characters that stand for secrets."""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from replaydbg.native._words import find
from replaydbg.secrets.forms import form_list
from replaydbg.secrets.secret_rules import SHORTEST

_CLASSES = tuple(each.encode() for each in (string.ascii_lowercase, string.ascii_uppercase, string.digits))
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|[\x80-\xff]+", re.DOTALL)
"""Text that stays as it is: it stands for one character, which has a length of its own in other forms."""


def pseudonym(secret: bytes, draw: random.Random) -> bytes:
    """Return a text for `secret`: lower-case letters, capitals and digits are replaced by others, the rest stays.

    Of a user and a password in base64, only the password is replaced. Its forms are as many, and as long, as those of
    the secret.
    """
    made = _drawn(secret, draw)
    while _lengths(made) != _lengths(secret):  # by chance it has a form more, such as that of base64
        made = _drawn(secret, draw)
    return made


def pseudonyms_of(secrets: Collection[bytes], draw: random.Random) -> dict[bytes, bytes]:
    """Return a pseudonym for each secret; one that has another one in it has its pseudonym in it, too.

    Of one that is another one in base64 or hexadecimal, with what is around it, only that one is replaced. A password in
    base64, with its user, counts as a secret of its own.
    """
    every = set(secrets)
    every.update(found[1] for each in secrets if (found := _in_base64(each)) is not None)
    made: dict[bytes, bytes] = {}
    for secret in sorted(every, key=lambda each: (len(each), each)):
        made[secret] = _reencoded(secret, made) or _with_inner(secret, pseudonym(secret, draw), made)
    return made


def _with_inner(secret: bytes, text: bytes, made: Mapping[bytes, bytes]) -> bytes:
    """Return `text`, of the length of `secret`, with the pseudonyms of the secrets in that, the longest ones last."""
    for inner, other in made.items():
        at = secret.find(inner)
        while at >= 0:
            text = text[:at] + other + text[at + len(inner) :]
            at = secret.find(inner, at + len(inner))
    return text


def _reencoded(secret: bytes, made: Mapping[bytes, bytes]) -> bytes | None:
    """Return a pseudonym for a secret that is an encoding of a text with known secrets in it; None: it is not."""
    for decode, encode in _CODECS:
        try:
            plain = decode(secret)
        except ValueError:
            continue
        if encode(plain) != secret or not any(inner in plain for inner in made):
            continue
        text = encode(_with_inner(plain, plain, made))
        if _lengths(text) == _lengths(secret):
            return text
    return None


def _from_base64(text: bytes) -> bytes:
    return base64.b64decode(text, validate=True)


def _from_hex(text: bytes) -> bytes:
    return bytes.fromhex(text.decode("ascii"))


_CODECS: tuple[tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]], ...] = (
    (_from_base64, base64.standard_b64encode),
    (base64.urlsafe_b64decode, base64.urlsafe_b64encode),
    (_from_hex, lambda plain: plain.hex().encode()),
    (_from_hex, lambda plain: plain.hex().upper().encode()),
)


def _lengths(secret: bytes) -> list[int]:
    return [len(each) for each in form_list(secret)]


def _drawn(secret: bytes, draw: random.Random) -> bytes:
    inner = _in_base64(secret)
    if inner is not None:
        user, password = inner
        return base64.b64encode(user + b":" + pseudonym(password, draw))
    made, at = bytearray(secret), 0
    kept = [match.span() for match in _ESCAPE.finditer(secret)]
    for start, end in [*kept, (len(secret), len(secret))]:
        made[at:start] = bytes(_replaced(byte, draw) for byte in secret[at:start])
        at = end
    return bytes(made)


def _replaced(byte: int, draw: random.Random) -> int:
    alphabet = next((each for each in _CLASSES if byte in each), None)
    return byte if alphabet is None else draw.choice(alphabet.replace(bytes([byte]), b""))


def _in_base64(secret: bytes) -> tuple[bytes, bytes] | None:
    if len(secret) % 4:
        return None
    try:
        decoded = base64.b64decode(secret, validate=True)
    except ValueError:
        return None
    user, colon, password = decoded.partition(b":")
    return (user, password) if colon and decoded.isascii() and len(password) >= SHORTEST else None


class Pseudonyms:
    """Replaces secrets, in all forms in which they may be written, by the same forms of their pseudonyms."""

    def __init__(self, pseudonyms: Mapping[bytes, bytes]) -> None:
        """`pseudonyms` has that of each secret. A form that has another length, or stands for two, is left out."""
        self._by_word: dict[bytes, bytes] = {}
        for secret in sorted(pseudonyms, key=lambda each: (len(each), each)):
            for form, other in zip(form_list(secret), form_list(pseudonyms[secret]), strict=False):
                if len(form) == len(other) >= SHORTEST:
                    self._by_word.setdefault(form, other)
        self._words = tuple(self._by_word)

    def found(self, data: bytes) -> bool:
        """Whether a secret is in data."""
        return bool(find(self._words, data))

    def replaced(self, data: bytes) -> bytes:
        """Return data with each secret replaced; of several that overlap, the longest of the first ones."""
        made, until = bytearray(data), 0
        for start, word in _longest_first(find(self._words, data), self._words):
            if start >= until:
                until = start + len(word)
                made[start:until] = self._by_word[word]
        return bytes(made)


def _longest_first(places: Iterable[tuple[int, int]], words: tuple[bytes, ...]) -> Iterator[tuple[int, bytes]]:
    found = ((start, words[number]) for start, number in places)
    return iter(sorted(found, key=lambda each: (each[0], -len(each[1]))))
