"""Command lines that end in a program with options of its own, which argparse must not see."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def split_words(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line into our own options and the program with all words after it."""
    options = {name: action for action in parser._actions for name in action.option_strings}
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            return words[:index], words[index + 1 :]
        if not word.startswith("-") or word in ("-", "-m", "-c"):
            break
        # `--output=FILE`, and `-oFILE`, have their value in the same word.
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if name not in options:
            # `-mpdb` and `-c...` in one word are spellings that the interpreter accepts.
            if name in ("-m", "-c"):
                break
            parser.error(f"{parser.prog.split()[-1]} has no option {word!r}; interpreter options go after --")
        index += 2 if word == name and options[name].nargs is None else 1
    return words[:index], words[index:]
