"""The answers of a diff of two snapshots: frozen values, in the order in which they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import translate
from typing import Generic, TypeVar

from replaydbg.classes import dataclass, field
from replaydbg.heap.retention.holding import RetainedGroup

T = TypeVar("T")

CHANGED = "changed"
"""A variable, attribute or item that now refers to something else."""
REPLACED = "replaced"
"""The same, between two objects of one type without a short value."""
ADDED = "added"
REMOVED = "removed"
VALUE = "value"
"""The same object with other content, such as a bytearray."""
RETYPED = "retyped"
"""The same object with another class."""
REORDERED = "reordered"
"""The same items of a sequence, in another order."""
KINDS = (CHANGED, REPLACED, RETYPED, VALUE, REORDERED, ADDED, REMOVED)

JOINED = "joined"
"""An object that had a name has another one, too."""
PARTED = "parted"
"""Two names of one object now have different objects."""

_INVERSE = {ADDED: REMOVED, REMOVED: ADDED, JOINED: PARTED, PARTED: JOINED}


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """The first answers to one question, and the total number."""

    items: tuple[T, ...]
    total: int

    @property
    def left_out(self) -> int:
        """The number of answers that are not in `items`."""
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
    """Size of all held objects."""
    cut: tuple[str, ...]
    """Sentences about parts that limits left out."""


@dataclass(frozen=True, slots=True)
class Change:
    """A variable, an attribute or an item that has changed."""

    kind: str
    """One of KINDS."""
    path_before: str
    """In source syntax, from a root of the snapshot before; empty if it did not exist."""
    path_after: str
    step: str = field(compare=False)
    """The last step alone, after if it exists there."""
    before: str
    """The value or the object as text; empty if there was nothing."""
    after: str
    type_before: str
    type_after: str
    owner_type: str
    """The type of the object that has the variable, attribute or item."""
    owner: tuple[int, int]
    """The node of that object before and after."""
    origin: str
    """The origin: `mine`, `standard` or `library`."""

    @property
    def path(self) -> str:
        """The path after, or before if it no longer exists."""
        return self.path_after or self.path_before

    def inverted(self) -> Change:
        """Return the same change with before and after exchanged."""
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
    """Number of items."""
    after: int
    retained_before: int
    """Bytes that would be free without it."""
    retained_after: int
    address: tuple[int, int]
    origin: str

    @property
    def path(self) -> str:
        """The path after."""
        return self.path_after or self.path_before

    def inverted(self) -> Grown:
        """Return the same growth with before and after exchanged."""
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
    """The differences between the objects of one type."""

    type: str
    before: int
    """Number of objects."""
    after: int
    added: int
    removed: int
    bytes_before: int
    bytes_after: int
    retained_added: int
    """Bytes that would be free without the added ones."""
    retained_removed: int

    def inverted(self) -> TypeChange:
        """Return the same difference with before and after exchanged."""
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
class Alias:
    """An object that gained another name, or lost one of several."""

    kind: str
    """JOINED or PARTED."""
    type: str
    name: str
    """The name that it gained or lost."""
    others: tuple[str, ...]
    """Names that it had before and has after, shortest first; at most MOST_NAMES."""
    other_count: int
    now: str
    """The target of a lost name after, or of a new one before; empty: nothing."""
    address: tuple[int, int]
    origin: str

    def inverted(self) -> Alias:
        """Return the same change with before and after exchanged."""
        return replace(self, kind=_INVERSE[self.kind], address=self.address[::-1])


@dataclass(frozen=True, slots=True)
class Hidden:
    """The differences that the chosen scope leaves out."""

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
    """The difference between two snapshots."""

    before: Side
    after: Side
    is_same_run: bool
    """Whether objects were matched by identity; if false, by the paths to them and by their content."""
    scope: str
    """The scope of reported objects: `mine`, `standard` (and mine), `all`."""
    changed: Section[Change]
    grown: Section[Grown]
    types: Section[TypeChange]
    new: Section[RetainedGroup]
    gone: Section[RetainedGroup]
    aliases: Section[Alias]
    hidden: Hidden
    """Number of further differences in the scope `all`."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, in any scope."""
        sections = (self.changed, self.grown, self.types, self.new, self.gone, self.aliases)
        return not self.hidden and not any(each.total for each in sections)

    def inverted(self) -> Diff:
        """Return the difference with before and after exchanged. Each section may leave out other answers."""
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
    """Return the difference without changes at paths that match one of `patterns`, at most `most` of each section.

    The numbers of objects by type are unchanged. Make `diff` with all answers: others are missing here.
    """
    wanted = [re.compile(translate(each)) for each in patterns]

    def keep(section: Section[T], path: Callable[[T], str]) -> Section[T]:
        kept = [each for each in section.items if not any(pattern.match(path(each)) for pattern in wanted)]
        return Section(tuple(kept[:most]), len(kept))

    # Changes that the patterns leave out still count by type; if none of them are left, these counts have no other
    # cause.
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
