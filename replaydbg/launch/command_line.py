"""The command line of an interpreter. It imports nothing: the start of pytest imports it before pytest."""

from __future__ import annotations

WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options that take a value."""


def leading_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Split an interpreter's command line (without its name) into its options and the rest: script, -m or -c."""
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-") or word in ("-m", "-c", "-", "--"):
            break
        if word.startswith("--") and word not in WITH_VALUE:
            break
        place = _run_letter(word)
        if place > 0:
            # `-mpdb`, `-Bm pdb`: several options in one word, the last of which names the program.
            before = [word[:place]] if place > 1 else []
            value = [word[place + 1 :]] if word[place + 1 :] else []
            return [*words[:index], *before], ["-" + word[place], *value, *words[index + 1 :]]
        index += 2 if word in WITH_VALUE else 1
    return words[:index], words[index:]


def _run_letter(word: str) -> int:
    """Return the index of -m or -c in a word of options, 0 if there is none; after -W and -X their value follows."""
    if word.startswith("--"):
        return 0
    for place, letter in enumerate(word[1:], 1):
        if letter in "mc":
            return place
        if letter in "WX":
            return 0
    return 0
