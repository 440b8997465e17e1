"""What a diff of two snapshots answers with: frozen values, in the order in which people ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fnmatch import translate
from typing import Generic, TypeVar

T = TypeVar("T")

CHANGED = "changed"
"""A variable, attribute or item led to something, and leads to something else."""
REPLACED = "replaced"
"""The same, between two objects of one type that have no short value."""
ADDED = "added"
REMOVED = "removed"
VALUE = "value"
"""The object is the same, and its own content is another one, as of a bytearray."""
RETYPED = "retyped"
"""The object is the same, and its class is another one."""
REORDERED = "reordered"
"""The items of a sequence are the same, in another order."""
KINDS = (CHANGED, REPLACED, RETYPED, VALUE, REORDERED, ADDED, REMOVED)

JOINED = "joined"
"""An object that had a name has another one, too."""
PARTED = "parted"
"""Two names were one object, and no longer are."""

_INVERSE = {ADDED: REMOVED, REMOVED: ADDED, JOINED: PARTED, PARTED: JOINED}


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """The first answers to one question, and how many there are in all."""

    items: tuple[T, ...]
    total: int

    @property
    def left_out(self) -> int:
        """How many are not in `items`."""
        return self.total - len(self.items)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two snapshots."""

    number: int
    event: int
    step: int
    name: str
    reason: str
    objects: int
    bytes: int
    """Of all objects that are held."""
    cut: tuple[str, ...]
    """Sentences about what limits left out of it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A variable, an attribute or an item that is not what it was."""

    kind: str
    """One of KINDS."""
    path_before: str
    """In source syntax, from a root of the snapshot before; empty if it was not there."""
    path_after: str
    step: str = field(compare=False)
    """The last step alone, after if it is there."""
    before: str
    """The value, or what there was, as text; empty if there was nothing."""
    after: str
    type_before: str
    type_after: str
    owner_type: str
    """Of the object whose variable, attribute or item it is."""
    owner: tuple[int, int]
    """Where that object lies before and after."""
    origin: str
    """`mine`, `standard` or `library`: whose it is."""

    @property
    def path(self) -> str:
        """Where it is found after, or was before."""
        return self.path_after or self.path_before

    def inverted(self) -> Change:
        """Return what it is seen from the other side."""
        return replace(
            self,
            kind=_INVERSE.get(self.kind, self.kind),
            path_before=self.path_after,
            path_after=self.path_before,
            before=self.after,
            after=self.before,
            type_before=self.type_after,
            type_after=self.type_before,
            owner=self.owner[::-1],
        )


@dataclass(frozen=True, slots=True)
class Grown:
    """A container that has more items than before, or fewer."""

    path_before: str
    path_after: str
    type: str
    before: int
    """Items."""
    after: int
    retained_before: int
    """Bytes that would be free without it."""
    retained_after: int
    address: tuple[int, int]
    origin: str

    @property
    def path(self) -> str:
        """Where it is found after."""
        return self.path_after or self.path_before

    def inverted(self) -> Grown:
        """Return what it is seen from the other side."""
        return replace(
            self,
            path_before=self.path_after,
            path_after=self.path_before,
            before=self.after,
            after=self.before,
            retained_before=self.retained_after,
            retained_after=self.retained_before,
            address=self.address[::-1],
        )


@dataclass(frozen=True, slots=True)
class TypeChange:
    """How the objects of one type differ."""

    type: str
    before: int
    """Objects."""
    after: int
    added: int
    removed: int
    bytes_before: int
    bytes_after: int
    retained_added: int
    """Bytes that would be free without the added ones."""
    retained_removed: int

    def inverted(self) -> TypeChange:
        """Return what it is seen from the other side."""
        return TypeChange(
            self.type,
            self.after,
            self.before,
            self.removed,
            self.added,
            self.bytes_after,
            self.bytes_before,
            self.retained_removed,
            self.retained_added,
        )


@dataclass(frozen=True, slots=True)
class Lot:
    """An object that is new, or is gone, with what it alone held: nothing that is new, or gone, held it alone."""

    path: str
    type: str
    text: str
    """Its value, or its type and how many items it has."""
    retained: int
    address: int
    origin: str


@dataclass(frozen=True, slots=True)
class Alias:
    """An object that got another name, or lost one of several."""

    kind: str
    """JOINED or PARTED."""
    type: str
    name: str
    """The name that it got, or lost."""
    others: tuple[str, ...]
    """Names that it had before and has after, shortest first; at most MOST_NAMES."""
    other_count: int
    now: str
    """What a lost name leads to after, or a new one led to before; empty: to nothing."""
    address: tuple[int, int]
    origin: str

    def inverted(self) -> Alias:
        """Return what it is seen from the other side."""
        return replace(self, kind=_INVERSE[self.kind], address=self.address[::-1])


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the chosen scope leaves out."""

    changed: int = 0
    grown: int = 0
    types: int = 0
    new: int = 0
    gone: int = 0
    aliases: int = 0

    def __bool__(self) -> bool:
        return self != Hidden()


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference of two snapshots."""

    before: Side
    after: Side
    is_same_run: bool
    """Whether objects were recognized by identity; otherwise by the paths to them and by their content."""
    scope: str
    """Whose objects are told: `mine`, `standard` (and mine), `all`."""
    changed: Section[Change]
    grown: Section[Grown]
    types: Section[TypeChange]
    new: Section[Lot]
    gone: Section[Lot]
    aliases: Section[Alias]
    hidden: Hidden
    """How much more there is in the scope `all`."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, in any scope."""
        sections = (self.changed, self.grown, self.types, self.new, self.gone, self.aliases)
        return not self.hidden and not any(each.total for each in sections)

    def inverted(self) -> Diff:
        """Return the difference seen from the other side. What is left out of a section may be something else there."""
        return replace(
            self,
            before=self.after,
            after=self.before,
            changed=_each(self.changed, Change.inverted),
            grown=_each(self.grown, Grown.inverted),
            types=_each(self.types, TypeChange.inverted),
            new=self.gone,
            gone=self.new,
            aliases=_each(self.aliases, Alias.inverted),
            hidden=replace(self.hidden, new=self.hidden.gone, gone=self.hidden.new),
        )


def without(diff: Diff, patterns: Iterable[str], most: int | None = None) -> Diff:
    """Return the difference without what lies at paths that match one of `patterns`, at most `most` of each section.

    The numbers of objects by type stay what they are. Make `diff` with all answers, or some are not even looked at.
    """
    wanted = [re.compile(translate(each)) for each in patterns]

    def keep(section: Section[T], path: Callable[[T], str]) -> Section[T]:
        kept = [each for each in section.items if not any(pattern.match(path(each)) for pattern in wanted)]
        return Section(tuple(kept[:most]), len(kept))

    # What the others leave out is counted by type still; where nothing is left of them, that is all that it was.
    types: Section[TypeChange] = Section(diff.types.items[:most], diff.types.total)
    left = replace(
        diff,
        changed=keep(diff.changed, lambda each: each.path),
        grown=keep(diff.grown, lambda each: each.path),
        types=Section((), 0),
        new=keep(diff.new, lambda each: each.path),
        gone=keep(diff.gone, lambda each: each.path),
        aliases=keep(diff.aliases, lambda each: each.name),
        hidden=replace(diff.hidden, types=0),
    )
    return left if left.is_empty else replace(left, types=types, hidden=diff.hidden)


def _each(section: Section[T], how: Callable[[T], T]) -> Section[T]:
    return Section(tuple(map(how, section.items)), section.total)
