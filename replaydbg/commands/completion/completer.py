"""Completion of a line at its cursor: commands, their arguments, and Python."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import PurePath

from replaydbg.classes import NamedTuple
from replaydbg.commands.completion.key_literals import begun_key
from replaydbg.commands.completion.python_tokens import CONSTANTS
from replaydbg.commands.completion.typed_argument import typed_argument
from replaydbg.commands.completion.typed_place import TypedAttribute, TypedKey, TypedName, typed_place
from replaydbg.commands.prompt import Prompt
from replaydbg.commands.searching import OPTIONS
from replaydbg.debugger.long_work import OutOfTime
from replaydbg.engine.completion.offers import OfferAttributes, Offered, OfferKeys, OfferNames
from replaydbg.errors import AskFailed, ReplaydbgError, UsageError

ASKED_SECONDS = 1.0
"""Seconds that one copy of the program may take: usually it takes some 20 ms, and a user waits for the answer."""

ALL_SECONDS = 2.5
"""Seconds after which there is no completion, whatever is waited for."""

LONGEST = 1000
"""Characters of a word that is offered."""

OPERATORS = ("and", "else", "for", "if", "in", "is", "not", "or")
"""The keywords that may follow an operand."""

OF_IMPORTS = ("as", "import")
"""The same in statements."""

OPERANDS = (*CONSTANTS, "await", "lambda", "not")
"""The keywords with which an operand of an expression may begin."""

_FIRST_WORD = re.compile(r"\s*(?P<word>[\w?-]*)\Z")


class Completion(NamedTuple):
    """The words that may take the place of what is typed before the cursor."""

    start: int
    """Where in the line they begin."""
    words: tuple[str, ...] = ()
    """Each begins with what is typed from there on."""

    @property
    def common(self) -> str:
        """The beginning that all words have."""
        least, greatest = min(self.words, default=""), max(self.words, default="")
        same = takewhile(lambda pair: pair[0] == pair[1], zip(least, greatest, strict=False))
        return "".join(each for each, _ in same)


def complete(prompt: Prompt, line: str, cursor: int, *, silent: bool = True) -> Completion:
    """Return what completes `line` at `cursor`. Never raises for the content of a line, or of the program.

    Whatever the program is asked for, copies of it answer, within ALL_SECONDS; `silent`: no progress is reported.
    """
    text, behind = line[:cursor], line[cursor:]
    nothing = Completion(cursor)
    try:
        with prompt.view.session.work.limited(ALL_SECONDS, silent=silent):
            found = _Completer(prompt, behind).of_line(text)
    except (ReplaydbgError, OutOfTime, RecursionError, MemoryError):
        return nothing  # the session is lost, or waits for something else
    typed = text[found.start :]
    # Names come from the recording and from its program: control characters in them would reach the terminal.
    possible = (each for each in found.words if each.startswith(typed) and each.isprintable() and len(each) <= LONGEST)
    words = tuple(sorted(set(possible), key=_order))
    return Completion(found.start, words) if words else nothing


def _order(word: str) -> tuple[int, str]:
    """Names that begin with underscores come last."""
    return len(word) - len(word.lstrip("_")), word


class _Completer:
    """Completes one line."""

    def __init__(self, prompt: Prompt, behind: str) -> None:
        """`behind`: the text behind the cursor."""
        self._prompt, self._behind = prompt, behind
        self._session = prompt.view.session

    def of_line(self, text: str) -> Completion:
        """Return what completes a line, or the command that it begins with."""
        stripped = text.lstrip()
        first = len(text) - len(stripped)
        if stripped.startswith("#"):
            return Completion(len(text))
        if stripped.startswith("!"):
            return self._python(text, first + 1, is_statement=True)
        if stripped.startswith("@"):
            return Completion(first, tuple(self._words("moments")))
        match = _FIRST_WORD.match(text)
        if match is not None:
            return self._first_word(text, match.start("word"))
        try:
            command, rest = self._prompt.split(stripped)
        except UsageError:
            command, rest = None, ""  # several commands begin so, but the line may be Python
        if command is None:
            return self._python(text, first, is_statement=True)
        begin = len(text) - len(rest)
        argument = typed_argument(command.completes, rest)
        start = begin + argument.start
        if argument.kind in ("expression", "statement"):
            return self._python(text, start, is_statement=argument.kind == "statement")
        return Completion(start, tuple(self._words(argument.kind)))

    def _first_word(self, text: str, start: int) -> Completion:
        """Complete the first word of a line: a command's name, or the beginning of an expression."""
        word = text[start:]
        commands = [name for name in self._prompt.vocabulary.names if name.startswith(word)]
        if not word or (commands and not word.isidentifier()):
            return Completion(start, tuple(commands))
        found = self._python(text, start, is_statement=True)
        return Completion(found.start, (*commands, *found.words) if found.start == start else found.words)

    # ---- Python ----

    def _python(self, text: str, first: int, *, is_statement: bool) -> Completion:
        """Complete Python that begins at `first`."""
        place = typed_place(text[first:])
        if place is None:
            return Completion(len(text))
        start = first + place.start
        begun = text[start:]
        if isinstance(place, TypedKey):
            keys = self._keys(place)
            return Completion(start, keys) if keys or begun else self._names(text, start, is_statement)
        if isinstance(place, TypedAttribute):
            query = OfferAttributes(**self._prompt.view.at, begun=begun, source=place.owner)
            return Completion(start, tuple(_names_in(self._asked(query).words)))
        assert isinstance(place, TypedName)
        if place.is_operator:
            return Completion(start, (*OPERATORS, *(OF_IMPORTS if is_statement else ())) if begun else ())
        return self._names(text, start, is_statement)

    def _names(self, text: str, start: int, is_statement: bool) -> Completion:
        begun = text[start:]
        keywords = (keyword.kwlist if is_statement else OPERANDS) if begun else ()
        query = OfferNames(**self._prompt.view.at, begun=begun)
        return Completion(start, (*keywords, *_names_in(self._asked(query).words)))

    def _asked(self, query: OfferNames | OfferAttributes | OfferKeys) -> Offered:
        """Return what a copy of the program offers; nothing, if the expression raises, or takes too long."""
        try:
            return self._session.ask.offers(query, seconds=ASKED_SECONDS)
        except (AskFailed, OutOfTime):
            return Offered(())

    def _keys(self, place: TypedKey) -> tuple[str, ...]:
        key = begun_key(place.literal)
        if key is None:
            return ()
        query = OfferKeys(**self._prompt.view.at, begun=key.begun, source=place.owner, kind=key.kind)
        offered = self._asked(query)
        literals = [each for each in map(key.completed, offered.words) if each is not None]
        # How other keys begin is not known: so no more than what is typed, or a quote, may be inserted.
        partial = (place.literal or literals[0][:1],) if offered.is_partial and literals else ()
        return (*partial, *(self._closed(each) for each in literals))

    def _closed(self, literal: str) -> str:
        """Return the literal with the bracket behind it, without what follows the cursor already."""
        behind = self._behind
        if literal[-1] in "'\"" and behind.startswith(literal[-1]):
            return literal[:-1]
        return literal if behind.startswith("]") else f"{literal}]"

    # ---- words of commands ----

    def _words(self, kind: str) -> Iterable[str]:
        """Return the words of a kind."""
        session, view = self._session, self._prompt.view
        marks = {f"@{name}" for name in session.marks.moments}
        hits = session.index.hits
        if kind == "moments":
            return marks | {"@start", "@end", "@last", "@exc", "@out:", "@log:", "@trace:", "@t+"}
        if kind == "marks":
            return {each[1:] for each in marks}
        if kind == "functions":
            return {each.function for each in hits if "<" not in each.function}
        if kind == "places":
            files = {f"{PurePath(each.file).name}:" for each in hits if not each.file.startswith("<")}
            return files | {each.function for each in hits if "<" not in each.function}
        if kind == "modules":
            return {each.name for each in session.ask.modules()}
        if kind == "exceptions":
            lineages = {each.lineage for each in session.index.raised}
            return {full.rpartition(".")[2] for each in lineages for full in each} - {"object"}
        if kind == "processes":
            is_group = view.group.directory is not None
            return {str(each.number) for each in view.group.group.processes if each.recording} if is_group else set()
        if kind == "lanes":
            return {str(each.id) for each in view.here.lanes}
        if kind == "subjects":
            from replaydbg.commands.about import SUBJECTS  # imported here: it imports every module of the prompt

            return set(SUBJECTS)
        return {
            "commands": self._prompt.vocabulary.names,
            "options": OPTIONS,
            "settings": ("var ", "exec-direction "),
            "directions": ("forward", "reverse"),
        }.get(kind, ())


def _names_in(words: Iterable[str | bytes]) -> list[str]:
    return [each for each in words if isinstance(each, str) and each.isidentifier() and not keyword.iskeyword(each)]
