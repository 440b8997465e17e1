"""Which exceptions a name means: those that `except NAME` would catch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from replaydbg.debugger.questions import checked

if TYPE_CHECKING:
    from replaydbg.debugger.session import Session
    from replaydbg.debugger.values import Raised

ANY = "*"
"""In the place of a name: all of them."""


def types_named(session: Session, name: str) -> frozenset[str]:
    """Return the full names of the types that `name` means; none: the run knows no such type.

    It is the name of a type, with as much of its module and of the classes around it as one likes, or what a module
    calls a type. Raises AskFailed.
    """
    known = {full for lineage in {each.lineage for each in session.index.raised} for full in lineage}
    found = frozenset(each for each in known if each == name or each.endswith(f".{name}"))
    # Only the program knows what its modules call a type, and which ones nobody raised.
    return found or _known_to_program(session, name)


def _known_to_program(session: Session, name: str) -> frozenset[str]:
    count = session.failure.count if session.failure is not None else session.index.end
    with closing(session.travel.at(count)) as worker:
        return frozenset(checked(worker.ask({"do": "types_named", "name": name}, idle=session.idle)))


def raised_as(session: Session, name: str) -> Iterator[Raised]:
    """Yield the exceptions of the run that `except NAME` would catch, in order."""
    types = session.types_named(name)
    return (each for each in session.index.raised if is_one_of(each, types))


def is_one_of(raised: Raised, types: frozenset[str]) -> bool:
    """Whether an exception's type is one of `types`, or inherits from one."""
    return ANY in types or not types.isdisjoint(raised.lineage)
