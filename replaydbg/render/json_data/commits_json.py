"""The result of `bisect commits` as JSON data; docs/reference/bisect-json.md describes it."""

from __future__ import annotations

from replaydbg.commits import Commit, CommitLook, CommitSearchResult
from replaydbg.render.commits_text import range_reason, reproduction_commands
from replaydbg.render.json_data.json_object import JsonObject


def facts(found: CommitSearchResult) -> JsonObject:
    """Return the result as data."""
    culprit, question = found.culprit, found.question
    return {
        "kind": "commits",
        "outcome": "found" if culprit is not None else "range",
        "reason": None if culprit is not None else range_reason(found),
        "repository": str(found.root),
        "good": found.good,
        "bad": found.bad,
        "program": list(question.program) or None,
        "replay": str(question.replay) if question.replay is not None else None,
        "check": question.check or None,
        "candidates": found.total,
        "passes_needed": found.passes_needed,
        "culprit": _commit_facts(culprit) if culprit is not None else None,
        "suspects": [_commit_facts(commit) for commit in found.suspects],
        "stat": found.stat or None,
        "trials": [_look_facts(found, look) for look in found.looks],
        "notes": list(found.notes),
        "recordings": {"bad": found.bad_recording or None, "good": found.good_recording or None},
        "commands": reproduction_commands(found),
    }


def _commit_facts(commit: Commit) -> JsonObject:
    return {"commit": commit.name, "author": commit.author, "date": commit.date, "subject": commit.subject}


def _look_facts(found: CommitSearchResult, look: CommitLook) -> JsonObject:
    return {
        "commit": look.commit,
        "subject": found.commits[look.commit].subject,
        "verdict": look.verdict.value,
        "why": look.why,
        "seconds": round(look.seconds, 3),
        "runs": look.runs,
        "failed": look.failed,
        "recording": look.recording or None,
        "deviations": list(look.liberties),
        "random_numbers_shift": look.shift or None,
        "clock_shift": look.clock_shift or None,
        "reused": look.is_reused,
    }
