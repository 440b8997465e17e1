"""What came of exchanging inputs between two runs."""

from __future__ import annotations

from dataclasses import dataclass

from replaydbg.bisect.twins import Input, Preemption


@dataclass(frozen=True, slots=True)
class Flip:
    """The smallest set of inputs that makes the bad run end as the good one did."""

    inputs: tuple[Input, ...]
    """What the bad run must be told as the good one was: none of them can be left out."""
    preemptions: tuple[Preemption, ...]
    """If the switches of threads are among them: those that are enough to make the run fail."""
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
