"""The known word that a mistyped one probably means."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint in brackets at the known word most similar to `word`; empty: none is similar."""
    # Imported here: only a mistyped word needs it.
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
