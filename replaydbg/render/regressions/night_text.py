"""The result of `replaydbg ci` as text."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.events.show import printable
from replaydbg.regressions.code_verdicts import CodeState
from replaydbg.regressions.night import CaseHistory, NightReport
from replaydbg.regressions.turning_points import TurningPointOfCode

POINT_COLUMNS = ("commit", "change", "recordings", "subject")
CASE_COLUMNS = ("recording", "recorded failure", "now", "history", "reason")
SIGNS = {CodeState.FAILS: "F", CodeState.PASSES: ".", CodeState.DIFFERS: "D", CodeState.UNKNOWN: "?"}
"""A verdict in one character."""
_MOST_SIGNS, _MOST_NAMES, _MOST_TEXT, _MOST_REGRESSIONS = 60, 8, 100, 20


def grouped_points(report: NightReport) -> list[tuple[TurningPointOfCode, list[str]]]:
    """Return each change once, with the names of the recordings for which it is the same; oldest first."""
    groups: dict[tuple[str, tuple[str, ...]], tuple[TurningPointOfCode, list[str]]] = {}
    for history in report.histories:
        for point in history.points:
            groups.setdefault((point.kind, point.suspects), (point, []))[1].append(history.case.name)
    place = {commit.name: index for index, commit in enumerate(report.commits)}
    return sorted(groups.values(), key=lambda each: (place[each[0].commit], each[0].kind))


def point_rows(report: NightReport) -> list[list[str]]:
    """Return the rows of the table of changes, in the order of POINT_COLUMNS."""
    subjects = {commit.name: commit.subject for commit in report.commits}
    rows = []
    for point, names in grouped_points(report):
        recordings = ", ".join(names[:_MOST_NAMES])
        if len(names) > _MOST_NAMES:
            recordings += f" and {len(names) - _MOST_NAMES} more"
        rows.append([_commit_text(point), point.kind, printable(recordings), printable(subjects[point.commit])])
    return rows


def _commit_text(point: TurningPointOfCode) -> str:
    if len(point.suspects) == 1:
        return point.commit[:10]
    return f"one of {len(point.suspects)}: {point.suspects[0][:10]}..{point.commit[:10]}"


def case_rows(report: NightReport) -> list[list[str]]:
    """Return the rows of the table of recordings, in the order of CASE_COLUMNS."""
    return [
        [
            printable(history.case.name),
            printable(shortened(history.case.what)),
            f"{history.now.value} (regression)" if history.is_regression else history.now.value,
            signs(history, report)[-_MOST_SIGNS:],
            printable(shortened(reason(history, report))),
        ]
        for history in report.histories
    ]


def reason(history: CaseHistory, report: NightReport) -> str:
    """Return the reason of a recording's verdict at the last commit."""
    if history.case.problem:
        return history.case.problem.removesuffix(".")
    last = history.verdicts.get(report.commits[-1].name)
    return last.why if last is not None else ""


def signs(history: CaseHistory, report: NightReport) -> str:
    """Return the verdicts at all commits, oldest first, a character for each."""
    if not history.verdicts:
        return ""
    return "".join(SIGNS[history.verdicts[commit.name].state] for commit in report.commits)


def shortened(text: str) -> str:
    """Return a text that is at most 100 characters long."""
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."


def summary_lines(report: NightReport) -> list[str]:
    """Return what was tested, the regressions, and where verdicts came from."""
    first, last = report.commits[0].name[:10], report.commits[-1].name[:10]
    lines = [
        f"{_number(len(report.histories), 'recording')} at {_number(len(report.commits), 'commit')}, "
        f"{first} to {last}: {_states(report)} at the last one"
    ]
    regressions = [printable(regression_text(each, report)) for each in report.histories if each.is_regression]
    lines += regressions[:_MOST_REGRESSIONS]
    if len(regressions) > _MOST_REGRESSIONS:
        lines.append(f"and {len(regressions) - _MOST_REGRESSIONS:,} more regressions")
    lines.append(_work(report))
    return lines


def regression_text(history: CaseHistory, report: NightReport) -> str:
    """Return a sentence about a recording that passed once and fails now."""
    last = report.commits[-1].name[:10]
    broke = [point for point in history.points if point.kind == "broke"]
    if history.passed_at:
        return (
            f"regression: {history.case.name} passed at {history.passed_at[:10]} in an earlier run and fails at {last}"
        )
    if not broke:
        return f"regression: {history.case.name} passes at an earlier commit and fails at {last}"
    return f"regression: {history.case.name} fails at {last}, since {_commit_text(broke[-1])}"


def _states(report: NightReport) -> str:
    counts = {state: sum(each.now is state for each in report.histories) for state in CodeState}
    words = {
        CodeState.FAILS: "still fail",
        CodeState.PASSES: "pass",
        CodeState.DIFFERS: "fail differently",
        CodeState.UNKNOWN: "inconclusive",
    }
    return ", ".join(f"{count:,} {words[state]}" for state, count in counts.items() if count) or "nothing to test"


def _work(report: NightReport) -> str:
    counts = report.counts
    run, known, equal = (counts.get(each, 0) for each in ("run", "known", "equal"))
    return (
        f"{_number(run + known + equal, 'verdict')} in {report.seconds:.1f} s: {run:,} by replays, "
        f"{equal:,} from equal code, {known:,} from earlier runs"
    )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def legend(rows: Sequence[Sequence[str]]) -> str:
    """Return the meaning of the characters in a history; empty without recordings."""
    return "history: . passes, F fails, D fails differently, ? inconclusive; oldest commit first" if rows else ""
