"""The question that a replay of edited code passes to the pytest plugin in the program's process, and its answer.

The recorded process imports it: it imports next to nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from replaydbg.classes import dataclass

VARIABLE = "REPLAYDBG_PYTEST_ASKED"
"""The environment variable that carries the question. No recording contains it."""


@dataclass(frozen=True, slots=True)
class TestQuestion:
    """How does a test end with edited code?"""

    __test__ = False

    tests: tuple[tuple[str, int, int], ...]
    """The tests to run, in order; the question is about the last one.

    For each: its name, the number of earlier tests collected with that name, and the number of earlier attempts.
    """
    attempt: int
    """The number of the attempt in question, from 0."""
    phase: str
    """Where it failed: `setup`, `call` or `teardown`; empty if it did not."""
    check: str
    """An expression that is evaluated when it has ended; empty: none."""

    def as_text(self) -> str:
        """Return the variable's value."""
        return json.dumps(asdict(self))


def read_question(text: str) -> TestQuestion:
    """Return the question from the variable's value, which the replaying tool has set."""
    data = json.loads(text)
    tests = tuple((str(name), int(before), int(attempt)) for name, before, attempt in data["tests"])
    return TestQuestion(tests, int(data["attempt"]), str(data["phase"]), str(data["check"]))


@dataclass(frozen=True, slots=True)
class TestAnswer:
    """How the test ended."""

    __test__ = False

    outcome: str
    """`passed`, `failed`, `skipped`, `missing` or `uncollected`."""
    message: str
    """The exception's text, or the reason."""
    check: tuple[str, str] | None = None
    """The value of the expression: `holds`, `fails` or `raised`, and the exception; None: it was not evaluated."""
    type: str = ""
    """The name of the exception's type, if the test failed."""
    own_file: str = ""
    """The file of the frame in the test, or of the one nearest to it."""
    own_line: int = 0
    """The line of that frame."""

    def as_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))


def read_answer(text: str) -> TestAnswer | None:
    """Return the answer in a text from the program's process; None: there is none, the program may write anything."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    texts = tuple(data.get(name, "") for name in ("outcome", "message", "type", "own_file"))
    line, check = data.get("own_line", 0), data.get("check")
    checked = tuple(check) if isinstance(check, list) else ()
    if not all(isinstance(each, str) for each in (*texts, *checked)) or type(line) is not int:
        return None
    if check is not None and len(checked) != 2:
        return None
    outcome, message, kind, file = texts
    return TestAnswer(outcome, message, (checked[0], checked[1]) if checked else None, kind, file, line)
