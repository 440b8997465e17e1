"""Questions about commits and looks at them as JSON data, which travels to workers and back."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path

from replaydbg.cluster.tasks import JsonObject
from replaydbg.commits.depends import Dependencies
from replaydbg.commits.question import CommitLook, Question
from replaydbg.events.verdict import Verdict

ELSEWHERE = "the workers of the cluster"
"""What a run of a program on a worker depends on besides its commit; changes of it are not noticed."""


def question_facts(question: Question) -> JsonObject:
    """Return a question without the recording, whose path is another one on each machine."""
    facts = asdict(replace(question, replay=None))
    facts["taken_along"] = [str(path) for path in question.taken_along]
    facts["recorded_root"] = str(question.recorded_root) if question.recorded_root is not None else None
    return facts


def question_from(facts: JsonObject, recording: Path | None) -> Question:
    """Return the question of these facts, with the path of its recording."""
    root = facts["recorded_root"]
    return Question(
        **facts
        | {
            "program": tuple(facts["program"]),
            "replay": recording,
            "taken_along": tuple(map(Path, facts["taken_along"])),
            "recorded_root": Path(root) if root is not None else None,
        }
    )


_LOOK = tuple(each.name for each in fields(CommitLook) if each.name not in ("verdict", "depends", "recording"))


def look_facts(look: CommitLook) -> JsonObject:
    """Return a look without its dependencies, which are paths of the machine where it was made."""
    return {name: getattr(look, name) for name in _LOOK} | {"verdict": look.verdict.value}


def look_from(facts: JsonObject, *, is_replay: bool, recording: str = "") -> CommitLook:
    """Return the look of these facts; `recording` is where the recording that was made is now."""
    given = {name: facts[name] for name in _LOOK} | {"liberties": tuple(facts["liberties"])}
    # A replay on a worker depends on the commit and on the recording only; a run of the program on what is installed.
    depends = Dependencies(unwatched=set() if is_replay else {ELSEWHERE})
    return CommitLook(**given, verdict=Verdict(facts["verdict"]), recording=recording, depends=depends)
