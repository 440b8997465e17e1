"""The result of `replaydbg ci` as JSON data."""

from __future__ import annotations

from replaydbg.regressions.code_verdicts import CommitVerdict
from replaydbg.regressions.night import CaseHistory, NightReport
from replaydbg.render.json_data.json_object import JsonObject


def night_facts(report: NightReport) -> JsonObject:
    """Return all of it."""
    return {
        "repository": str(report.root),
        "outcome": "regression" if report.has_regressions else "ok" if report.is_conclusive else "inconclusive",
        "commits": [
            {
                "name": commit.name,
                "author": commit.author,
                "date": commit.date,
                "subject": commit.subject,
                "parents": list(report.parents.get(commit.name, ())),
                "base": commit.name in report.bases,
            }
            for commit in report.commits
        ],
        "recordings": [_case(each, report) for each in report.histories],
        "verdicts": {"replayed": 0, "equal": 0, "known": 0} | {_SOURCES[key]: n for key, n in report.counts.items()},
        "seconds": round(report.seconds, 3),
        "notes": list(report.notes),
    }


_SOURCES = {"run": "replayed", "equal": "equal", "known": "known"}


def _case(history: CaseHistory, report: NightReport) -> JsonObject:
    case = history.case
    return {
        "name": case.name,
        "path": str(case.path),
        "command": case.command,
        "recorded": case.what,
        "problem": case.problem or None,
        "now": history.now.value,
        "regression": history.is_regression,
        "passed_at": history.passed_at or None,
        "changes": [
            {
                "change": point.kind,
                "commit": point.commit,
                "suspects": list(point.suspects),
                "before": point.before.value,
                "after": point.after.value,
            }
            for point in history.points
        ],
        "verdicts": [
            {"commit": commit.name, **_verdict(history.verdicts[commit.name])}
            for commit in report.commits
            if commit.name in history.verdicts
        ],
    }


def _verdict(verdict: CommitVerdict) -> JsonObject:
    return {
        "verdict": verdict.state.value,
        "why": verdict.why,
        "from": _SOURCES[verdict.found],
        "seconds": verdict.seconds,
    }
