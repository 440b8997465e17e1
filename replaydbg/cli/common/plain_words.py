"""Parse common command lines without argparse, whose import and set-up take 5 ms before every program.

A command declares its options once, on whichever parser it gets. This one accepts options that are spelled out, each
followed by its value, and nothing else: abbreviations, joined values (`--limit=3`), `--help` and every mistake are left
to argparse, so that all messages come from one place.
"""

from __future__ import annotations

from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class _Declared:
    """One option or positional argument."""

    __slots__ = ("appends", "choices", "convert", "default", "is_flag", "name")

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        action = settings.get("action", "store")
        self.is_flag = action == "store_true"
        self.appends = action == "append"
        self.default = settings.get("default", False if self.is_flag else None)
        self.choices: Sequence[str] | None = settings.get("choices")
        self.convert: Callable[[str], Any] = settings.get("type", str)


class PlainParser:
    """Takes the place of an ArgumentParser to which a command adds its arguments."""

    def __init__(self) -> None:
        self.usage = self.epilog = ""
        """Texts of the help, which this class does not print."""
        self._options: dict[str, _Declared] = {}
        self._positional: list[_Declared] = []
        self._is_possible = True

    def add_argument(self, *names: str, **settings: Any) -> None:
        """Declare an option or a positional argument, as for argparse."""
        if "nargs" in settings or "const" in settings or settings.get("action", "store") not in _ACTIONS:
            self._is_possible = False
            return
        name = names[-1].lstrip("-").replace("-", "_")
        declared = _Declared(settings.get("dest", name), settings)
        if names[0].startswith("-"):
            self._options |= dict.fromkeys(names, declared)
        else:
            self._positional.append(declared)

    def parse(self, words: list[str], *, has_program: bool) -> SimpleNamespace | None:
        """Return the values of the declared arguments; None if argparse must parse the words.

        With `has_program` the words end in a program with its own arguments, which become `program`.
        """
        found = SimpleNamespace(program=[])
        for each in (*self._positional, *self._options.values()):
            setattr(found, each.name, each.default)
        rest = iter(words)
        positional = iter(self._positional)
        for word in rest:
            if has_program and (word == "--" or not word.startswith("-")):
                found.program = [*([] if word == "--" else [word]), *rest]
                break
            declared = self._options.get(word) if word.startswith("-") else next(positional, None)
            if declared is None or not _take(declared, word, rest, found):
                return None
        is_whole = self._is_possible and next(positional, None) is None
        return found if is_whole else None


_ACTIONS = ("store", "store_true", "append")


def _take(declared: _Declared, word: str, rest: Any, found: SimpleNamespace) -> bool:
    """Store the value of an argument; return False if argparse must parse it."""
    if declared.is_flag:
        setattr(found, declared.name, True)
        return True
    value = next(rest, "-") if word.startswith("-") else word
    if value.startswith("-") or (declared.choices is not None and value not in declared.choices):
        return False
    try:
        converted = declared.convert(value)
    except (TypeError, ValueError):
        return False
    if declared.appends:
        converted = [*getattr(found, declared.name), converted]
    setattr(found, declared.name, converted)
    return True
