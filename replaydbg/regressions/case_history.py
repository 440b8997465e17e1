"""What became of one recording over the commits, from its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from replaydbg.regressions.code_verdicts import Case, CodeState, CommitVerdict
from replaydbg.regressions.night import CaseHistory
from replaydbg.regressions.night_plan import NightPlan
from replaydbg.regressions.turning_points import carried_states, turning_points


def history_of(
    case: Case, verdicts: Mapping[str, CommitVerdict], plan: NightPlan, passed_at: Callable[[], str]
) -> CaseHistory:
    """Return the history of a recording.

    `passed_at` finds a commit at which it passed in an earlier run, or nothing; it is called only if that matters.
    """
    states = {commit: verdict.state for commit, verdict in verdicts.items()}
    points = turning_points(plan.order, plan.graph.parents, states)
    at_end = carried_states(plan.order, plan.graph.parents, states)[plan.last].states
    fails = bool(at_end) and CodeState.PASSES not in at_end
    passed_here = CodeState.PASSES in states.values()
    before = passed_at() if fails and not passed_here else ""
    return CaseHistory(
        case,
        verdicts,
        points,
        now=states.get(plan.last, CodeState.UNKNOWN),
        is_regression=fails and (passed_here or bool(before)),
        passed_at=before,
    )
