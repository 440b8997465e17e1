"""The frames of a thread, fetched on demand: a stack may be very deep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from replaydbg.engine.reports import Frame
from replaydbg.errors import EngineLost


class Frames(Sequence[Frame]):
    """All frames of a thread, innermost first. Outer ones are fetched on demand.

    It is valid as long as the process stays where it was made. Raises EngineLost.
    """

    def __init__(self, depth: int, first: tuple[Frame, ...], more: Callable[[int], tuple[Frame, ...]]) -> None:
        """`more` returns the frames from a number on, as many as come at once."""
        self._depth, self._known, self._more = depth, list(first), more

    def __len__(self) -> int:
        return self._depth

    @overload
    def __getitem__(self, at: int) -> Frame: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Frame]: ...

    def __getitem__(self, at: int | slice) -> Frame | Sequence[Frame]:
        if isinstance(at, slice):
            wanted = range(*at.indices(self._depth))
            return [self[each] for each in wanted]
        if not -self._depth <= at < self._depth:
            raise IndexError(at)
        at %= self._depth
        while at >= len(self._known):
            more = self._more(len(self._known))
            if not more:
                raise EngineLost("its frames do not match its report")
            self._known += more
        return self._known[at]

    def __iter__(self) -> Iterator[Frame]:
        return (self[at] for at in range(self._depth))
