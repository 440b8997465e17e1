"""The user's own patterns of secrets: the setting `secret_patterns`, which a recording has in its header.

They are in effect for a block, not passed on: secrets are searched in several places of the recorder, which need not
know of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from replaydbg.secrets.secret_values import SHORTEST

_LONGEST = 1 << 13
"""Bytes of a secret: a pattern that matches more has run into what is behind it."""
_in_effect: ContextVar[tuple[str, ...]] = ContextVar("user_patterns", default=())


def patterns_in_header(header: bytes) -> tuple[str, ...]:
    """Return the patterns of a recording with this header."""
    if b'"patterns"' not in header:  # nearly always: it need not be parsed
        return ()
    try:
        patterns = json.loads(header)["secrets"]["patterns"]
    except (ValueError, TypeError, KeyError, RecursionError):  # it has none, or the program has changed it
        return ()
    return tuple(each for each in patterns if isinstance(each, str)) if isinstance(patterns, list) else ()


def patterns_of_live(live: Path) -> tuple[str, ...]:
    """Return the patterns of a recording that was not sealed yet."""
    try:
        return patterns_in_header((live / "header.json").read_bytes())
    except OSError:  # the search for its secrets reports that
        return ()


def current_patterns() -> tuple[str, ...]:
    """Return the patterns that are in effect."""
    return _in_effect.get()


@contextmanager
def searching_for(patterns: Iterable[str]) -> Iterator[None]:
    """Let patterns be in effect in the block."""
    token = _in_effect.set(tuple(dict.fromkeys(patterns)))
    try:
        yield
    finally:
        _in_effect.reset(token)


def found_by_user_patterns(data: bytes, start: int, end: int | None) -> Iterator[tuple[re.Match[bytes], int]]:
    """Yield what the patterns in effect match in data from `start` on, if the match begins before `end`.

    With each match, the group that is the secret.
    """
    for pattern in filter(None, map(_compiled, _in_effect.get())):
        for match in pattern.finditer(data, start):
            if end is not None and match.start() >= end:
                break
            group = 1 if pattern.groups and match[1] is not None else 0
            if SHORTEST <= len(match[group]) <= _LONGEST:
                yield match, group


@cache
def _compiled(pattern: str) -> re.Pattern[bytes] | None:
    """Return a pattern for bytes; None if it is invalid: the recording is of somebody else, or of another Python."""
    try:
        return re.compile(pattern.encode())
    except (re.error, ValueError, OverflowError, RecursionError):
        return None
