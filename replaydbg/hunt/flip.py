"""What came of exchanging inputs between two runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from replaydbg.bisect.twins import Input, LaneKey, Preemption


class OtherTurn(NamedTuple):
    """A switch at which another thread has to go on for the run to pass."""

    switch: int
    """Which one of the bad run, from 0."""
    gave_way: LaneKey
    """The thread that gave way there."""
    recorded: int
    """The lane that went on."""
    recorded_key: LaneKey
    """Which thread that is."""
    instead: int
    """The lane that goes on instead, and did first in the good run."""
    instead_key: LaneKey
    """Which thread that is."""
    after: int
    """The number of the last event before, of any thread."""


class Replayed(NamedTuple):
    """A replay that was made to confirm the answer."""

    what: str
    """What was replayed."""
    how: str
    """How it ended: PASSES, FAILS ... of `bench`; empty: it was not made."""
    said: str
    """How it ended, or why it was not made, in words."""
    is_confirmed: bool
    """Whether it ended as the answer says."""


class Explained(NamedTuple):
    """How many of the bad runs the answer explains."""

    runs: int = 1
    of: int = 1


@dataclass(frozen=True, slots=True)
class Flip:
    """The smallest set of inputs that makes the bad run end as the good one did."""

    inputs: tuple[Input, ...]
    """What the bad run must be told as the good one was: none of them can be left out."""
    preemptions: tuple[Preemption, ...]
    """If the switches of threads are among them: those that are enough to make the run fail."""
    turns: tuple[OtherTurn, ...]
    """Where another thread has to go on, if it is not the preemptions."""
    others: tuple[tuple[Input, ...], ...]
    """Other sets that do it as well."""
    trials: int
    """How many replays were made."""
    undecided: int
    """In how many of them the program asked for something that neither recording has, or failed in another way."""
    reason: str = ""
    """Why there is no such set; empty: there is one."""
    is_from_bad: bool = False
    """Whether it was found the other way round: the good run fails with these from the bad run."""
    is_cut: bool = False
    """Whether there were too many trials: then a smaller set may do."""
    liberties: tuple[tuple[str, int], ...] = ()
    """What the replay with these did otherwise than recorded, by kind (MEANINGS in `replaydbg.replay.ending`)."""
    replays: tuple[Replayed, ...] = ()
    """What was replayed with and without it when it had been found."""
    explained: Explained = field(default_factory=Explained)
    """How many of the bad runs pass with it."""

    @property
    def is_confirmed(self) -> bool:
        """Whether each of those replays, of which there is one at least, ended as it should."""
        return bool(self.replays) and all(each.is_confirmed for each in self.replays)
