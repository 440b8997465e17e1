"""The result of exchanging inputs between two runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from replaydbg.bisect.lane_turns import LaneKey, Preemption
from replaydbg.bisect.twins import Input
from replaydbg.hunt.trial_end import TrialOutcome


class OtherTurn(NamedTuple):
    """A switch at which another thread has to continue for the run to pass."""

    switch: int
    """The index of the switch in the bad run, from 0."""
    gave_way: LaneKey
    """The thread that gave way there."""
    recorded: int
    """The lane that continued."""
    recorded_key: LaneKey
    """The identity of that thread."""
    instead: int
    """The lane that continues instead, and was first in the good run."""
    instead_key: LaneKey
    """The identity of that thread."""
    after: int
    """The number of the last event before, of any thread."""


class Confirmation(NamedTuple):
    """A replay made to confirm the answer."""

    what: str
    """The run that was replayed."""
    outcome: TrialOutcome | None
    """None: the replay was not made."""
    said: str
    """The result as text, or why the replay was not made."""
    is_confirmed: bool
    """Whether the result agrees with the answer."""


class Explained(NamedTuple):
    """How many of the bad runs the answer explains."""

    runs: int = 1
    of: int = 1


@dataclass(frozen=True, slots=True)
class Flip:
    """The smallest set of inputs that makes the bad run end as the good one did."""

    inputs: tuple[Input, ...]
    """The inputs of the good run that the bad run needs to pass: none of them can be left out."""
    preemptions: tuple[Preemption, ...]
    """If the thread schedule is among them: the preemptions that suffice to make the run fail."""
    turns: tuple[OtherTurn, ...]
    """The switches at which another thread has to continue, if preemptions are not the cause."""
    others: tuple[tuple[Input, ...], ...]
    """Other sets with the same effect."""
    trials: int
    """Number of replays made."""
    undecided: int
    """Number of these in which the program asked for something that neither recording has, or failed in another way."""
    reason: str = ""
    """Why there is no such set; empty: there is one."""
    is_from_bad: bool = False
    """Whether it was found in the other direction: the good run fails with these inputs from the bad run."""
    is_cut: bool = False
    """Whether the maximum number of trials was reached: then a smaller set may suffice."""
    liberties: tuple[tuple[str, int], ...] = ()
    """The deviations of the replay with these inputs, by kind (MEANINGS in `replaydbg.replay.ending`)."""
    replays: tuple[Confirmation, ...] = ()
    """The confirming replays with and without it."""
    explained: Explained = field(default_factory=Explained)
    """How many of the bad runs pass with it."""

    @property
    def is_confirmed(self) -> bool:
        """Whether each of those replays, of which there is at least one, ended as expected."""
        return bool(self.replays) and all(each.is_confirmed for each in self.replays)
