"""Recordings of a single test, replayed with edited code: the question to the pytest plugin in it, and its answer.

The end of the program is irrelevant here: such a recording ends with the test, and pytest goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.errors import UsageError
from replaydbg.events.records import ControlKind, Event
from replaydbg.installed import is_installed
from replaydbg.launch.replay_question import TestQuestion, read_answer
from replaydbg.log.reader import Recording
from replaydbg.replay.ending import CheckResult, ExceptionFrame, Outcome, Uncaught
from replaydbg.replay.result import ReplayResult

QUESTION = "posix.listxattr"
"""The event with which the plugin asks before each test whether that is left out."""
_OURS = str(Path(__file__).parents[1]) + "/"
_PLUGIN = "/pytest_plugin/child/lenient_replay.py"
"""The part of the plugin that runs a test with edited code."""


@dataclass(frozen=True, slots=True)
class Tested:
    """The test that a recording is of."""

    node: str
    """Its pytest node id."""
    ran: tuple[tuple[str, int, int], ...]
    """The tests that run in it, in order; it is the last one.

    For each: its name, the number of earlier tests collected with that name, and the number of earlier attempts.
    """
    attempt: int
    """The number of this attempt, from 0: a test may be run again."""
    phase: str
    """Where it failed: `setup`, `call` or `teardown`; empty if it did not."""
    outcome: Outcome | None
    """How it ended; None if the process ended in it."""
    failed_at: int
    """Number of events at the time of its failure: the rest is pytest's own work to report it. 0: it did not fail."""

    def asked(self, check: str | None) -> str:
        """Return the question to the plugin, as the variable's value."""
        return TestQuestion(self.ran, self.attempt, self.phase, check or "").as_text()


def tested(recording: Recording) -> Tested | None:
    """Return the test in a recording; None: there is none, or its data is incomplete."""
    raw: object = recording.end.raw.get("test") if recording.end is not None else None
    if not isinstance(raw, dict):
        return None
    try:
        node, attempt, failure = str(raw["nodeid"]), int(raw["attempt"]), raw.get("failure")
        outcome = _recorded_failure(failure) if failure else _ended_well(str(raw["outcome"]))
        phase, failed_at = (str(failure["phase"]), int(failure["event"])) if failure else ("", 0)
    except (KeyError, TypeError, ValueError):
        return None  # the recording may contain anything
    ran = tuple((*each, before) for each, before in _begun(recording).items())
    is_there = any(each[0] == node for each in ran)
    return Tested(node, ran, attempt, phase, outcome, failed_at) if is_there else None


def check_plugin(recording: Recording, test: Tested) -> None:
    """Raise UsageError if the plugin in the recording cannot run edited code: older ones lack the part that does."""
    sources = recording.end.sources if recording.end is not None else {}
    if not any(path.endswith(_PLUGIN) for path in sources):
        raise UsageError(f"An older version of replaydbg recorded {test.node}: record it again to test other sources.")


def _begun(recording: Recording) -> dict[tuple[str, int], int]:
    """Return the tests that run in a recording, as in `Tested.ran`: all but those that were left out."""
    found: dict[tuple[str, int], int] = {}
    before, is_left_out = 0, False
    for entry in recording.events():
        if isinstance(entry, Event):
            if entry.gate == QUESTION:
                is_left_out = "reports" in _answer(entry.outcome)
        elif entry.kind is ControlKind.MARK:
            mark = _read(entry.name or "")
            if mark.get("do") == "item":
                before = _count(mark, "before")
            elif mark.get("do") == "begin" and not is_left_out:
                found.setdefault((str(mark.get("node")), before), _count(mark, "attempt"))
    return found


def _count(mark: dict[str, Any], name: str) -> int:
    """Return a number in a mark, which the program may have made itself."""
    value = mark.get(name, 0)
    return value if type(value) is int else 0


def _answer(outcome: object) -> dict[str, Any]:
    return _read(str(outcome[0])) if isinstance(outcome, list) and len(outcome) == 1 else {}


def judged(result: ReplayResult) -> tuple[Outcome | None, CheckResult | None, str]:
    """Return how the test ends with edited code, the result of the check, and why neither is known."""
    answer = read_answer(result.answer)
    if answer is None:
        return None, None, result.cannot_test or result.ended_early or "the test did not finish"
    what = answer.outcome
    check = CheckResult(*answer.check) if answer.check is not None else None
    if what == "passed":
        return _ended_well("passed"), check, ""
    if what == "failed":
        return _failed(answer.type, answer.message, answer.own_file, answer.own_line), check, ""
    reasons = {
        "skipped": "the test is skipped",
        "missing": "no such test",
        "uncollected": "its file cannot be loaded",
    }
    if what not in reasons:
        return None, None, result.cannot_test or result.ended_early or "the test did not finish"
    more = answer.message.strip()
    return None, None, f"{reasons[what]}: {more}" if more else reasons[what]


def of_test(result: ReplayResult) -> ReplayResult:
    """Return the result with only those deviations that the program's own code took: pytest's own do not matter."""
    kept = tuple(each for each in result.liberties if not _is_of_pytest(each.file))
    return replace(result, liberties=kept, liberty_counts=dict(Counter(each.kind for each in kept)))


def _is_of_pytest(file: str) -> bool:
    """Whether no code of the program was on the stack: then the innermost frame of all is reported."""
    return not file or file.startswith(("<frozen ", _OURS)) or is_installed(file)


def _recorded_failure(raw: dict[str, Any]) -> Outcome:
    """Return how a test failed, from the end of its recording. Raises KeyError, TypeError, ValueError."""
    return _failed(str(raw["type"]), str(raw["message"]), str(raw["own_file"]), int(raw["own_line"]))


def _failed(kind: str, message: str, file: str, line: int) -> Outcome:
    frame = ExceptionFrame(file, line, "", is_library=False)
    return Outcome(1, Uncaught(kind, message.partition("\n")[0], (frame,)))


def _ended_well(outcome: str) -> Outcome | None:
    return Outcome(0, None, "the test passes") if outcome == "passed" else None


def _read(text: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):  # a mark made by the program itself
        content = json.loads(text)
        if isinstance(content, dict):
            return content
    return {}
