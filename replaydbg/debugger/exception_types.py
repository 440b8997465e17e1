"""Exception types that a name means: those that `except NAME` would catch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Raised
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.engine.queries import FindExceptionTypes

ANY = "*"
"""In the place of a name: all of them."""


def types_named(view: ReplayView, name: str) -> frozenset[str]:
    """Return the full names of the types that `name` means; none: the run knows no such type.

    It is the name of a type, with as much of its module and of the classes around it as one likes, or what a module
    calls a type. Raises AskFailed.
    """
    known = {full for lineage in {each.lineage for each in view.index.raised} for full in lineage}
    found = frozenset(each for each in known if each == name or each.endswith(f".{name}"))
    # Only the program knows what its modules call a type, and which ones were never raised.
    return found or _known_to_program(view, name)


def _known_to_program(view: ReplayView, name: str) -> frozenset[str]:
    count = view.failure.count if view.failure is not None else view.index.end
    with closing(view.travel.at(count)) as worker:
        return worker.ask(FindExceptionTypes(name), idle=view.work.idle)


def raised_as(view: ReplayView, name: str) -> Iterator[Raised]:
    """Yield the exceptions of the run that `except NAME` would catch, in order."""
    types = view.types_named(name)
    return (each for each in view.index.raised if is_one_of(each, types))


def is_by_own_code(raised: Raised, own: OwnCode) -> bool:
    """Whether the user's own code raised an exception, and no library."""
    return own.decided(raised.file, default=raised.is_own)


def is_one_of(raised: Raised, types: frozenset[str]) -> bool:
    """Whether an exception's type is one of `types`, or inherits from one."""
    return ANY in types or not types.isdisjoint(raised.lineage)
