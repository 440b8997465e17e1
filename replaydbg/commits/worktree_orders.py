"""Execute the order given to `start.py` in a worktree, in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

from replaydbg.bisect.confidence import runs_needed
from replaydbg.commits.orders import DOES_NOT_START, Order, RecordedRun, RecordOrder, ReplayedCode, ReplayOrder
from replaydbg.config import load_settings
from replaydbg.events.verdict import Verdict
from replaydbg.record import record
from replaydbg.replay.edited_code import CodeVerdict, Judge
from replaydbg.replay.result import ReplayResult

MOST_LIBERTIES = 200
"""Maximum number of deviations of one replay that are kept; further ones are only counted."""
MOST_SEEDS = 100
"""Maximum number of other random seeds for one commit, and for measuring how often the recorded code fails."""
ENOUGH_FAILURES = 6
"""Number of failures of the recorded code after which its failure rate is known well enough."""
CONFIDENCE = 0.999
"""Confidence that the failure would have shown at a commit that counts as good.

Replays are cheap, and a search tests several commits. In 40,000 simulated measurements of a failure in 30 % of runs, a
bad commit counted as good 5.3 % of the time with 0.95, and 0.1 % with 0.999.
"""


def obey(order: Order) -> RecordedRun | ReplayedCode:
    """Record or replay as ordered, and return the result."""
    return _replay(order) if isinstance(order, ReplayOrder) else _record(order)


def _record(order: RecordOrder) -> RecordedRun:
    result = record(order.program, output=Path(order.output), settings=load_settings({"quiet": True}))
    return RecordedRun(result.status, str(result.path))


def _replay(order: ReplayOrder) -> ReplayedCode:
    null = os.open(os.devnull, os.O_WRONLY)
    path = Path(order.replay)
    judge = Judge(
        path,
        path.name,
        order.sources,
        order.check or None,
        data=frozenset(order.data),
        stdout=null,
        stderr=null,
        # A commit may differ only in a module that could not be imported when the program was recorded.
        is_replayed_unchanged=True,
        is_rest_recorded=order.is_rest_recorded,
    )
    found = judge.judge()
    looked = _Looked([found.result])
    verdict, why, replays, rate = found.verdict, found.reason, 0, order.rate
    if verdict is Verdict.GOOD and found.numbers_shift:
        rate = order.rate or _rate(judge, found)
        verdict, what, replays = _with_other_numbers(judge, found, looked, *rate)
        why = f"{what}; {found.numbers_shift}"
    os.close(null)
    liberties = [str(liberty) for liberty in found.result.liberties[:MOST_LIBERTIES]]
    more = sum(found.result.liberty_counts.values()) - len(liberties)
    liberties += [f"and {more} more"] if more > 0 else []
    return ReplayedCode(
        verdict,
        why,
        tuple(liberties),
        replays,
        rate,
        found.numbers_shift,
        found.clock_shift,
        found.is_other_failure and _has_started(found),
        looked.together(),
    )


def _has_started(found: CodeVerdict) -> bool:
    """Whether the code ran: a commit that lacks the script or a module, or cannot be compiled, does not apply."""
    raised = found.now.exception if found.now is not None else None
    if raised is None:
        return True
    has_no_script = raised.type == "FileNotFoundError" and not raised.frames
    return not has_no_script and raised.type.rpartition(".")[2] not in DOES_NOT_START


class _Looked(list[ReplayResult]):
    """Replays of the same code, the answers to whose questions about today's disk decide the verdict."""

    def together(self) -> tuple[tuple[str, str], ...] | None:
        """Return all their questions; None: those of one are unknown."""
        if any(each.looked is None for each in self):
            return None
        return tuple(sorted({one for each in self for one in each.looked or ()}))


def _rate(judge: Judge, found: CodeVerdict) -> tuple[int, int]:
    """Return how often the recorded code fails with other random numbers, and the number of conclusive replays."""
    failed = measured = 0
    for seed in range(1, MOST_SEEDS + 1):
        verdict, _ = judge.with_other_numbers(seed, found, is_edited=False)
        measured += verdict is not Verdict.UNDECIDED
        failed += verdict is Verdict.BAD
        if failed == ENOUGH_FAILURES:
            break
    return failed, measured


def _with_other_numbers(
    judge: Judge, found: CodeVerdict, looked: _Looked, failed: int, measured: int
) -> tuple[Verdict, str, int]:
    """Return the verdict for code whose random numbers are shifted, the reason, and the number of replays.

    It does not fail with the recorded ones, which proves little. So it is replayed with others; `failed` of `measured`
    such replays of the recorded code fail. The replays of the code are added to `looked`.
    """
    if not failed:
        return (
            Verdict.UNDECIDED,
            f"does not fail, but neither does the recorded code with {measured} other seeds: inconclusive",
            0,
        )
    needed = runs_needed(failed=failed, measured=max(measured, 2), confidence=CONFIDENCE)
    if needed > MOST_SEEDS:
        return (
            Verdict.UNDECIDED,
            f"does not fail; with other seeds the recorded code fails too rarely, {failed} of {measured} times",
            0,
        )
    passed = 0
    for other in range(MOST_SEEDS + 1, 2 * MOST_SEEDS + 1):
        verdict, result = judge.with_other_numbers(other, found, is_edited=True)
        looked.append(result)
        if verdict is Verdict.BAD:
            tried = other - MOST_SEEDS
            return Verdict.BAD, f"fails with other random numbers ({tried} replay{'s' if tried > 1 else ''})", tried
        passed += verdict is Verdict.GOOD
        if passed == needed:
            text = f"does not fail with {passed} other seeds (the recorded code fails {failed} of "
            return Verdict.GOOD, f"{text}{measured} times)", other - MOST_SEEDS
    return (
        Verdict.UNDECIDED,
        "does not fail, but replays with other seeds need inputs that were not recorded",
        MOST_SEEDS,
    )
