"""Pseudonyms: texts of the same length and of the same classes of characters that stand for secrets."""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from replaydbg.native.finding import find
from replaydbg.secrets.forms import Base64Form, base64_forms, form_list
from replaydbg.secrets.secret_parts import with_parts
from replaydbg.secrets.secret_values import SHORTEST

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

    The same if it has that in base64 or hexadecimal, with what is around it. Bytes before and after stay if they are
    too few for a secret. A password that is in base64 with its user counts as a secret of its own.
    """
    every = with_parts(secrets)
    every.update([found[1] for each in every if (found := _in_base64(each)) is not None])
    made: dict[bytes, bytes] = {}
    for secret in sorted(every, key=lambda each: (len(each), each)):
        inner = [*_plain_ones(secret, made), *_encoded_ones(secret, made)]
        made[secret] = _with_inner(secret, pseudonym(secret, draw), inner)
    return made


def _plain_ones(secret: bytes, made: Mapping[bytes, bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield where known secrets are in another one, and their pseudonyms; the longest ones last."""
    for known, other in made.items():
        at = secret.find(known)
        while at >= 0:
            yield at, other
            at = secret.find(known, at + len(known))


def _encoded_ones(secret: bytes, made: Mapping[bytes, bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield where a secret has encodings of texts with known secrets in them, and those of their pseudonyms."""
    for form, decode, encode in reversed(_CODECS):
        for match in form.finditer(secret):
            try:
                plain = decode(match[0])
            except ValueError:
                continue
            inner = list(_plain_ones(plain, made))
            if inner and encode(plain) == match[0]:
                yield match.start(), encode(_placed(plain, inner))


def _with_inner(secret: bytes, text: bytes, inner: list[tuple[int, bytes]]) -> bytes:
    """Return `text`, which was drawn for a secret, with the pseudonyms of what is in that."""
    if not inner:
        return text
    made = bytearray(text)
    spans = sorted((at, at + len(other)) for at, other in inner)
    for before, after in pairwise([(0, 0), *spans, (len(secret), len(secret))]):
        if 0 < after[0] - before[1] < SHORTEST:
            made[before[1] : after[0]] = secret[before[1] : after[0]]
    return _placed(bytes(made), inner)


def _placed(text: bytes, inner: list[tuple[int, bytes]]) -> bytes:
    made = bytearray(text)
    for at, other in inner:
        made[at : at + len(other)] = other
    return bytes(made)


def _from_base64(text: bytes) -> bytes:
    return base64.b64decode(text, validate=True)


def _from_hex(text: bytes) -> bytes:
    return bytes.fromhex(text.decode("ascii"))


_CODECS: tuple[tuple[re.Pattern[bytes], Callable[[bytes], bytes], Callable[[bytes], bytes]], ...] = (
    (re.compile(rb"[A-Za-z0-9+/]{8,}={0,2}"), _from_base64, base64.standard_b64encode),
    (re.compile(rb"[A-Za-z0-9_-]{8,}={0,2}"), base64.urlsafe_b64decode, base64.urlsafe_b64encode),
    (re.compile(rb"(?<![0-9A-Fa-f])[0-9a-f]{12,}(?![0-9A-Fa-f])"), _from_hex, lambda plain: plain.hex().encode()),
    (
        re.compile(rb"(?<![0-9A-Fa-f])[0-9A-F]{12,}(?![0-9A-Fa-f])"),
        _from_hex,
        lambda plain: plain.hex().upper().encode(),
    ),
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
        self._shared: dict[bytes, list[tuple[Base64Form, Base64Form]]] = {}
        """Of a form in base64, what is known of the characters around it: secret and pseudonym."""
        for secret in sorted(pseudonyms, key=lambda each: (len(each), each)):
            for form, other in zip(form_list(secret), form_list(pseudonyms[secret]), strict=False):
                if len(form) == len(other) >= SHORTEST:
                    self._by_word.setdefault(form, other)
            for base, new in zip(base64_forms(secret), base64_forms(pseudonyms[secret]), strict=False):
                if self._by_word.get(base.form) == new.form:
                    self._shared.setdefault(base.form, []).append((base, new))
        self._forms = tuple(self._by_word)
        self._words = self._forms
        """With pieces."""

    def add_piece(self, form: bytes, start: int, end: int) -> None:
        """Replace a piece of a form of a secret wherever it is, too."""
        self._by_word.setdefault(form[start:end], self.of_piece(form, start, end))
        self._words = tuple(self._by_word)

    def of_piece(self, form: bytes, start: int, end: int) -> bytes:
        """Return what stands for `form[start:end]` of a form of a secret; the same bytes if it has no pseudonym."""
        piece = form[start:end]
        return self._by_word.get(piece) or self._by_word.get(form, form)[start:end]

    @property
    def forms(self) -> Collection[bytes]:
        """The forms of secrets that are replaced."""
        return self._forms

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
                for old, new in self._shared.get(word, ()):
                    if _replace_shared(made, start, until, old, new):
                        break
        return bytes(made)


def _replace_shared(made: bytearray, start: int, end: int, old: Base64Form, new: Base64Form) -> bool:
    """Replace the bits of a secret in the characters around it, where they are its bits; return whether they are."""
    low, high = (1 << old.before_bits) - 1, (1 << 6) - (1 << (6 - old.after_bits))
    before = old.alphabet.find(made[start - 1 : start] or b"=") if old.before_bits else 0
    after = old.alphabet.find(made[end : end + 1] or b"=") if old.after_bits else 0
    if before < 0 or after < 0 or before & low != old.before or after & high != old.after:
        return False
    if old.before_bits:
        made[start - 1] = old.alphabet[(before & ~low) | new.before]
    if old.after_bits:
        made[end] = old.alphabet[(after & ~high) | new.after]
    return True


def _longest_first(places: Iterable[tuple[int, int]], words: tuple[bytes, ...]) -> Iterator[tuple[int, bytes]]:
    found = ((start, words[number]) for start, number in places)
    return iter(sorted(found, key=lambda each: (each[0], -len(each[1]))))
