"""Confirm an answer: repeat the replays with and without the inputs that it names, when the search is over."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.hunt.bench import Bench, Trial
from replaydbg.hunt.flip import Confirmation
from replaydbg.hunt.trial_end import TrialOutcome


def confirmed(bench: Bench, replays: Sequence[tuple[str, Trial, TrialOutcome]]) -> tuple[Confirmation, ...]:
    """Repeat each replay once; each is given as its description, the trial, and the expected result."""
    if bench.count.is_over:
        return tuple(Confirmation(what, None, "there were too many trials", False) for what, _, _ in replays)
    ended = bench.ended([trial for _, trial, _ in replays], is_again=True)
    return tuple(
        Confirmation(what, each.outcome, str(each), each.outcome is wanted)
        for (what, _, wanted), each in zip(replays, ended, strict=True)
    )


def confirmed_turns(bench: Bench, other: Trial) -> tuple[Confirmation, ...]:
    """Confirm that the run fails in the order in which it was recorded, and passes in another one."""
    return confirmed(
        bench,
        [
            ("the bad run as recorded", Trial(()), TrialOutcome.FAILS),
            ("with the other thread first", other, TrialOutcome.PASSES),
        ],
    )
