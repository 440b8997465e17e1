"""What a secret consists of: the program uses the part that it needs, without quotes, line ends, or the user's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from replaydbg.secrets.secret_values import is_secret_value


def with_parts(secrets: Iterable[bytes]) -> set[bytes]:
    """Return secrets without what is around them, and the parts that are secrets of their own."""
    return {part for secret in secrets for part in _parts(secret)}


def _parts(secret: bytes) -> Iterator[bytes]:
    core = _core(secret)
    if not is_secret_value(core):
        yield secret  # only with what is around it
        return
    yield core
    for part in _inner(core):
        if is_secret_value(part):
            yield from _parts(part)


def _core(secret: bytes) -> bytes:
    """Return a secret without the blanks, line ends and quotes around it, also if these are escaped.

    A backslash alone never stays: masking it would change what is behind it.
    """
    ends = rb"(?:[\s\"']|\\+[nrt\"'])+"
    return re.sub(rb"\A" + ends + rb"|" + ends + rb"\Z", b"", secret)


def _inner(core: bytes) -> list[bytes]:
    """Return the password of a user, the token behind the name of a scheme, or the items of a list."""
    for pattern in _patterns():
        if match := pattern.fullmatch(core):
            return [match[1]]
    items = [_core(each) for each in re.split(rb"[,;\s]+", core)]
    is_list = len(items) > 1 and all(len(each) >= 8 and re.search(rb"\d", each) for each in items)
    return items if is_list and all(re.fullmatch(rb"[\w.+/=~:@-]+", each) for each in items) else []


@cache
def _patterns() -> tuple[re.Pattern[bytes], ...]:
    return (
        re.compile(rb"[\w.@+-]{1,64}:(?!//)(\S+)"),
        re.compile(rb"(?i:basic|bearer|token|negotiate|apikey)\s+(\S+)"),
    )
