"""Find secrets in texts: what has the form of a token or password, and what the user's own patterns match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from replaydbg.classes import NamedTuple
from replaydbg.native.finding import find
from replaydbg.secrets.secret_names import is_secret_name
from replaydbg.secrets.secret_patterns import MOST_BEFORE, RULES, SecretRule, compiled
from replaydbg.secrets.secret_values import (
    SHORTEST,
    is_expression,
    is_secret_field,
    is_secret_in_text,
    is_secret_value,
)
from replaydbg.secrets.user_patterns import found_by_user_patterns

__all__ = ("HINTS", "MOST_BEFORE", "WIDEST", "is_secret_name", "is_secret_value", "secrets_in")

WIDEST = 1 << 13
"""Bytes from a hint on in which a secret is looked for."""
_BY_HINT: dict[bytes, list[SecretRule]] = {}
for _each in RULES:
    for _hint in _each.hints:
        _BY_HINT.setdefault(_hint, []).append(_each)
HINTS = tuple(_BY_HINT)
"""The words of which one is in whatever a rule finds."""
_WIDE_HINTS = tuple(each.decode("latin-1").encode("utf-16-le")[:-1] for each in HINTS)
"""The same in UTF-16, in the middle of either order of bytes."""
_WIDE_TEXT = re.compile(rb"(?:[\t\n\r -~]\x00)+")
_ALL_HINTS = HINTS + _WIDE_HINTS


class SecretPlace(NamedTuple):
    """Where something begins that has the form of a secret, and its bytes."""

    at: int
    text: bytes
    is_strict: bool
    """Whether it is in a text, which may be a program: not all of what has the form is a secret there."""
    is_of_user: bool = False
    """Whether a pattern of the user's has found it: then it is a secret, whatever it looks like."""
    since: int = 0
    """Where the form begins that it has: with a telling name, for instance."""
    until: int = 0
    """The byte behind that form: a quotation mark, for instance, or the last line of a key."""

    def moved(self, offset: int) -> SecretPlace:
        """Return the same so many bytes further on."""
        return self._replace(at=self.at + offset, since=self.since + offset, until=self.until + offset)

    def counts(self, text: bytes) -> bool:
        """Whether `text`, all or a part of it, is a secret, and not a setting or a name in a program."""
        if self.is_of_user:
            return len(text) >= SHORTEST
        return is_secret_in_text(text) if self.is_strict else is_secret_field(text)


def secrets_in(data: bytes, *, start: int = 0, end: int | None = None) -> set[bytes]:
    """Return the secrets in data whose hints are between two offsets, as they are written there.

    Those that the user's own patterns find are among them, see `user_patterns`.
    """
    return {each.text for each in places_in(data, start=start, end=end) if each.counts(each.text)}


def places_in(data: bytes, *, start: int = 0, end: int | None = None) -> Iterator[SecretPlace]:
    """Yield what has the form of a secret and whose hint is between two offsets; whether it counts is not asked yet."""
    for found, group in found_by_user_patterns(data, start, end):
        first, last = found.span()
        yield SecretPlace(found.start(group), found[group], is_strict=False, is_of_user=True, since=first, until=last)
    for offset, hint in find(_ALL_HINTS, data):
        if start <= offset and (end is None or offset < end):
            if hint < len(HINTS):
                yield from _places_at(data, offset, HINTS[hint])
            else:
                yield from _places_in_wide_text(data, offset, HINTS[hint - len(HINTS)])


def _places_at(data: bytes, offset: int, hint: bytes) -> Iterator[SecretPlace]:
    """Yield what has the form of a secret by a hint that is at an offset."""
    for rule in _BY_HINT[hint]:
        begin = since = max(offset - rule.before, 0)
        if rule.behind:
            low = max(begin - MOST_BEFORE, 0)
            before = compiled(rule.behind).search(data[low:begin])
            if before is None:
                continue
            since = low + before.start()
        if match := rule.pattern.match(data, begin, begin + WIDEST):
            shape = SecretPlace(0, b"", rule.is_strict, since=since, until=match.end())
            yield from (shape._replace(at=at, text=text) for at, text in _values(rule, match))


def _places_in_wide_text(data: bytes, offset: int, hint: bytes) -> Iterator[SecretPlace]:
    """Do the same in UTF-16, whose places count its bytes; what is found is without the zeros."""
    first = max(offset - 2 * MOST_BEFORE, offset % 2)
    low = offset
    while low - 2 >= first and data[low - 1] == 0 and (32 <= data[low - 2] < 127 or data[low - 2] in b"\t\n\r"):
        low -= 2
    found = _WIDE_TEXT.match(data, low, low + 2 * WIDEST)
    if found is not None:
        # Of big-endian text, each zero is before its character: of the last one it is in the text already.
        is_big = data[low - 1 : low] == b"\x00"
        text = data[low : found.end() + is_big : 2]
        for place in _places_at(text, (offset - low) // 2, hint):
            yield place._replace(at=low + 2 * place.at, since=low + 2 * place.since, until=low + 2 * place.until)


def places_in_pieces(pieces: Iterable[bytes]) -> Iterator[SecretPlace]:
    """Yield what has the form of a secret in pieces of bytes, also what goes on in the next piece.

    Where it begins is counted from the first piece.
    """
    before, start, offset = b"", 0, 0
    for piece in pieces:
        data = before + piece
        end = max(len(data) - WIDEST, start)
        yield from (each.moved(offset) for each in places_in(data, start=start, end=end))
        first = max(end - MOST_BEFORE, 0)
        before, start, offset = data[first:], end - first, offset + first
    yield from (each.moved(offset) for each in places_in(before, start=start))


def _values(rule: SecretRule, match: re.Match[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield what a rule has found: where it begins, and its bytes."""
    group = match.lastindex or 0
    at, text = match.start(group), match[group]
    if rule.parts is not None:
        last = 0
        for part in rule.parts(text):
            begin = text.find(part, last)
            begin = begin if begin >= 0 else text.find(part)  # with a part of the one before
            yield at + begin, part
            last = begin + len(part)
        return
    if rule.is_bare and is_expression(text.decode("utf-8", "surrogateescape")):
        return
    yield at, text
    before = match[0][: at - match.start()][-1:]
    if before and not (before.isascii() and before >= b" "):
        yield at + 1, text[1:]  # the first byte may be the length of the value in a record
