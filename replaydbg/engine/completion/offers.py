"""Queries for what completes an expression: names, attributes and keys, which the probe finds inside a copy of the
program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from replaydbg.engine.queries import FrameQuery, Query
from replaydbg.errors import ForgedMessage
from replaydbg.log.coding.shapes import ListOf, one_of

MOST_OFFERED = 500
"""How many names or keys an answer has: more are no help to a reader, and a terminal would need minutes to show all
100,000 keys of a dictionary."""


@dataclass(frozen=True, slots=True)
class Offered:
    """Names or keys that begin as it was typed."""

    words: tuple[str | bytes, ...]
    """If there are more than MOST_OFFERED, a selection that has the common beginning of all."""
    is_partial: bool = False
    """Whether there are so many keys that not all were looked at: others may begin differently."""


@dataclass(frozen=True, slots=True)
class OfferQuery(FrameQuery[Offered]):
    """A query for words that begin with `begun`."""

    shape: ClassVar[object] = (ListOf(one_of(str, bytes)), bool)
    begun: str | bytes = ""
    most: int = MOST_OFFERED

    def _read(self, answer: Any) -> Offered:
        words, is_partial = answer
        if len(words) > self.most:
            raise ForgedMessage("it offered too many words")
        return Offered(tuple(words), is_partial)


@dataclass(frozen=True, slots=True)
class OfferNames(OfferQuery):
    """The names that code in a frame sees: with nothing typed only variables, else builtins and loaded modules, too."""

    tag = "offer_names"


@dataclass(frozen=True, slots=True)
class OfferAttributes(OfferQuery):
    """The names of the attributes of an expression's value."""

    tag = "offer_attributes"
    source: str = ""
    asks_object: bool = True
    """Whether the value's own `__dir__` is called as well; else its dictionary and its classes are read."""


@dataclass(frozen=True, slots=True)
class OfferKeys(OfferQuery):
    """The keys of an expression's value."""

    tag = "offer_keys"
    source: str = ""
    kind: str = "any"
    """`str` or `bytes`: only such keys, as they are; `any`: all that can be written down, as repr() writes them."""
    asks_object: bool = True
    """Whether the value's own methods are called: only then the columns of a data frame are known. If not, fewer keys
    are looked at, too."""


OFFER_QUERIES: dict[str, type[Query[Any]]] = {each.tag: each for each in (OfferNames, OfferAttributes, OfferKeys)}
"""Every one of these queries, by its tag."""
