"""The vocabulary of the prompt: the command that a word means."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replaydbg.errors import UsageError
from replaydbg.events.nearest_words import nearest

if TYPE_CHECKING:
    from replaydbg.commands.view import View


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """A command of the prompt."""

    names: tuple[str, ...]
    """Every name that it has in pdb, gdb, rr and pudb; the first is its own."""
    usage: str
    """The arguments; empty: there are none."""
    help: str
    """The description, in one line."""
    run: Callable[[View, str], None]
    """Do it, with what follows the name. Raises ReplaydbgError for what makes no sense."""
    repeats: bool = False
    """Whether an empty line repeats it."""
    completes: str = "locals"
    """The kind of its arguments, for completion: `locals` for an expression, another one that `completion.completer`
    knows, such as `moments`, or nothing."""


def expression_in(rest: str, usage: str) -> str:
    """Return what follows a command that needs an expression. Raises UsageError, with its `usage`, if nothing does."""
    text = rest.strip()
    if not text:
        raise UsageError(f"usage: {usage}")
    return text


class Vocabulary:
    """All commands by their names."""

    def __init__(self, commands: Iterable[PromptCommand], refused: dict[str, str]) -> None:
        """`refused`: names of what other debuggers have and this one has not, each with a sentence."""
        self.commands = tuple(commands)
        self._refused = refused
        self._by_name = {name: each for each in self.commands for name in each.names}

    @property
    def names(self) -> tuple[str, ...]:
        """Every name."""
        return tuple(sorted(self._by_name))

    def find(self, word: str) -> PromptCommand | None:
        """Return the command that `word` means, by its name or by a beginning that no other has; None: there is none.

        Raises UsageError for what is refused, and for a beginning that several have.
        """
        if word in self._by_name:
            return self._by_name[word]
        if word in self._refused:
            raise UsageError(self._refused[word])
        found = {id(self._by_name[name]): name for name in self.names if name.startswith(word)}
        if len(found) > 1:
            raise UsageError(f"{word!r} is ambiguous: {', '.join(sorted(found.values()))}.")
        return self._by_name[next(iter(found.values()))] if found else None

    def unknown(self, word: str) -> UsageError:
        """Return the complaint about a word that means nothing, with the nearest that does."""
        return UsageError(f"Unknown command {word!r}{nearest(word, self.names)}. `help` lists the commands.")
