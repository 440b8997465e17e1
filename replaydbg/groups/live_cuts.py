"""The live cuts of a group, each with its consistent cut and how it compares with the search for one."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from replaydbg.distributed.live_cuts import MarkedChannel, differences, marked_channel, positions_at
from replaydbg.errors import UsageError
from replaydbg.groups.group_cuts import GroupCut, GroupCuts
from replaydbg.log.live_cuts import LiveCut


class CheckedCut(NamedTuple):
    """A live cut."""

    number: int
    """From 1, in the order in which they were taken."""
    live: LiveCut
    cut: GroupCut
    """Its positions: the latest consistent cut at or before those that the clock gives."""
    channels: tuple[MarkedChannel, ...]
    """How far each channel had come, by the clock alone."""
    differences: tuple[str, ...]
    """Where the positions and channels that the clock gives are not those of the consistent cut; empty: nowhere."""


class LiveCuts:
    """Shows the live cuts of a group."""

    def __init__(self, cuts: GroupCuts) -> None:
        """Take the cuts of a group."""
        self._cuts = cuts
        self._members = cuts.opened.matching.members

    @cached_property
    def taken(self) -> tuple[LiveCut, ...]:
        """The live cuts, in order."""
        return self._cuts.opened.group.cuts

    def find(self, text: str) -> int:
        """Return the number of a cut that is given by its number or its name. Raises UsageError."""
        if text.isdecimal() and len(text) < 9 and 1 <= int(text) <= len(self.taken):
            return int(text)
        named = [number for number, each in enumerate(self.taken, 1) if each.name == text and text]
        if len(named) == 1:
            return named[0]
        if named:
            raise UsageError(
                f"{len(named)} live cuts have the name {text!r}. Give the number: {named[0]} is the first."
            )
        if not self.taken:
            raise UsageError(f"{self._cuts.opened.name} has no live cuts.")
        raise UsageError(f"{self._cuts.opened.name} has no live cut {text!r}: it has {len(self.taken)}.")

    def checked(self, number: int) -> CheckedCut:
        """Return a live cut with its positions, checked against the search for consistent cuts."""
        live = self.taken[number - 1]
        wanted = positions_at(self._members, live.ticket)
        if live.process in wanted and live.position:
            # Its later events up to its next transfer were after its call.
            wanted[live.process] = min(wanted[live.process], live.position)
        positions, found = differences(self._cuts.finder, self._cuts.histories, self._members, live.ticket, wanted)
        cut = self._cuts.at(positions, is_quiet=False)._replace(wanted=wanted)
        channels = tuple(marked_channel(each, live.ticket) for each in self._cuts.histories)
        return CheckedCut(number, live, cut, channels, tuple(found))
