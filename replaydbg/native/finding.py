"""The search for words in bytes, see `words/words.c`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def find(words: tuple[bytes, ...], data: ReadableBuffer) -> list[tuple[int, int]]:
    """Return where each occurrence of a word begins and which word it is, by their order. Raises ImportError."""
    # Imported here: modules that search can be imported where nothing is compiled.
    from replaydbg.native import _words

    return _words.find(words, data)
