"""Names, attributes and keys that complete an expression.

Classes, dictionaries and modules are read without running code of the program. Only if the query says so, the
methods by which a value describes itself are called; what they raise or print is lost, and if they take too long, the
debugger asks again without them.
"""

from __future__ import annotations

import sys

from replaydbg.engine.probe.elements import ndarrays
from replaydbg.engine.probe.evaluation import Text
from replaydbg.engine.probe.frames import frame_of, names_of_module, value_in
from replaydbg.engine.probe.value_text import GETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from replaydbg.engine.completion import offers

    Words = tuple[list[str | bytes], bool]

MOST_LOOKED_AT = 400_000
"""Keys of one container. A copy of the program touches each for the first time, which takes up to a microsecond."""

MOST_WRITTEN = 100_000
"""The same, if each is written down."""

LONGEST_WORD = 200
"""Characters of a name or key: nobody completes longer ones."""

MOST_SORTED = 20_000
"""Names of which the first ones are offered; of more, any."""

PLAIN = (str, bytes, int, float, bool, tuple, type(None))
"""The types of the parts of a key: repr() of others would run code of the program."""

MRO_OF = type.__dict__["__mro__"].__get__
NAMES_OF_CLASS = type.__dict__["__dict__"].__get__
"""Attributes of classes, read without running code of the class."""


def offer_names(query: offers.OfferNames) -> Words:
    """The names that code in a frame sees."""
    frame = frame_of(query)
    sources = [frame.f_locals, frame.f_globals]
    if query.begun:
        sources += [frame.f_builtins, sys.modules]
    return offered_of([each for source in sources for each in list(source)], query)


def offer_attributes(query: offers.OfferAttributes) -> Words:
    """The names of a value's attributes."""
    value = silent_value(query)
    names = attribute_names(value)
    own: Any = next((each for each in classes_of(value) if "__dir__" in NAMES_OF_CLASS(each)), object)
    names_itself = own not in (object, type, type(sys)) or "__dir__" in (names_of_module(value) or ())
    if query.asks_object and names_itself:
        names += names_it_gives(value)
    return offered_of(names, query)


def names_it_gives(value: Any) -> list[Any]:
    """The names that a value's own `__dir__` returns; none, if it raises."""
    kind: Any = type(value)
    try:
        return list(kind.__dir__(value))  # dir() would sort what need not be text
    except BaseException:
        return []


def silent_value(query: Any) -> Any:
    """The value of the query's expression; what is printed for it is lost."""
    sys.stdout = sys.stderr = Text()
    return value_in(frame_of(query), query.source)


def classes_of(value: Any) -> tuple[Any, ...]:
    """The classes in which attributes of a value are looked up."""
    found: tuple[Any, ...] = MRO_OF(type(value))
    return found


def attribute_names(value: Any) -> list[Any]:
    """The names in a value's own dictionary, or in those of its bases, and in its classes."""
    of_module = names_of_module(value)
    if of_module is not None:
        return list(of_module)
    is_class = issubclass(type(value), type)
    kinds = MRO_OF(value) if is_class else classes_of(value)
    found = [name for kind in kinds for name in NAMES_OF_CLASS(kind)]
    return found if is_class else [*found, *own_names(value)]


def own_names(value: Any) -> Iterable[Any]:
    """The names in the dictionary of an object."""
    for kind in classes_of(value):
        getter: Any = NAMES_OF_CLASS(kind).get("__dict__")
        if type(getter) is GETS:
            names = getter.__get__(value)
            return list(names) if isinstance(names, dict) else ()
    return ()


def offered_of(names: Iterable[Any], query: offers.OfferQuery) -> Words:
    """Those of the names that begin as it was typed; ones with an underscore only once an underscore was typed."""
    begun: Any = query.begun
    found = {
        str.__str__(name)
        for name in names
        if issubclass(type(name), str)
        and str.startswith(name, begun)
        and str.isidentifier(name)
        and str.__len__(name) <= LONGEST_WORD
        and (begun or not str.startswith(name, "_"))
    }
    return selected(sorted(found) if len(found) <= MOST_SORTED else list(found), query.most), False


def selected(words: list[Any], most: int) -> list[Any]:
    """Some of the words, if there are many. The least and the greatest have no more in common than all have."""
    if len(words) <= most:
        return words
    ends = (min(words), max(words))
    return [*ends, *[each for each in words[: most + 2] if each not in ends]][:most]


# ---- keys ----


def offer_keys(query: offers.OfferKeys) -> Words:
    """The keys of a value."""
    value = silent_value(query)
    keys = iter(keys_of(value, query.asks_object))
    found: list[Any] = []
    left = MOST_WRITTEN if query.kind == "any" else MOST_LOOKED_AT
    if not query.asks_object:
        left //= 10  # all took too long
    plain: Any = {"str": str, "bytes": bytes}.get(query.kind)
    for key in keys:
        left -= 1
        if left < 0:
            break
        word = key if type(key) is plain else word_of(key, query.kind)
        if word is not None and word.startswith(query.begun) and len(word) <= LONGEST_WORD:
            found.append(word)
    return selected(found, query.most), left < 0


def keys_of(value: Any, asks_object: bool) -> Any:
    """The keys of a value: those of a dictionary without running code of the program."""
    if issubclass(type(value), dict):
        return dict.__iter__(value)
    if not asks_object:
        return ()
    kind = type(value)
    if issubclass(kind, ndarrays()):
        return value.dtype.names or ()
    if hasattr(kind, "_ipython_key_completions_"):
        return iter(value._ipython_key_completions_())
    if hasattr(kind, "keys") and hasattr(kind, "__getitem__"):
        return iter(value.keys())
    return ()


def word_of(key: Any, wanted: str) -> Any:
    """A key as the query wants it; None: it is of another kind, or cannot be written down."""
    kind = type(key)
    if wanted == "str":
        return str.__str__(key) if issubclass(kind, str) else None
    if wanted == "bytes":
        return key if kind is bytes else None
    return repr(str.__str__(key) if issubclass(kind, str) else key) if can_be_written(key) else None


def can_be_written(key: Any, depth: int = 2) -> bool:
    """Whether repr() of a key is short, runs no code of the program and means an equal key."""
    kind: Any = type(key)
    if issubclass(kind, str):
        return str.__len__(key) <= LONGEST_WORD
    if kind is bytes:
        return bytes.__len__(key) <= LONGEST_WORD
    if kind is int:
        return int.bit_length(key) <= 200
    if kind is float:
        return bool(key - key == 0)  # neither infinite nor a NaN
    if kind is tuple and depth and key:
        return len(key) <= 8 and all(type(each) in PLAIN and can_be_written(each, depth - 1) for each in key)
    return key is None or kind is bool
