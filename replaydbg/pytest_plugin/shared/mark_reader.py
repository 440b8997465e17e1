"""Read the marks of a recorded session. The program can make marks of its own, which are not about a test."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from replaydbg.pytest_plugin.shared.json_reader import fields_as, read_json
from replaydbg.pytest_plugin.shared.marks_of_tests import AttemptBegun, AttemptEnded, PhaseRaised, TestAsked
from replaydbg.pytest_plugin.shared.shared_names import why_no_name

_OUTCOMES = ("passed", "skipped", "failed", "interrupted")


class Progress(Enum):
    """A mark without facts."""

    COLLECTED = "collected"
    """The state shared by all tests is complete."""
    FINISHED = "finished"
    """The tests are over."""


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports of a test begin; what follows is not its own work."""

    has_report: bool
    """Whether the mark carries a report."""
    report: object
    """The report as pytest serializes it; None: it was too long."""


@dataclass(frozen=True, slots=True)
class ReportsEnded:
    """They have ended."""

    is_last: bool
    """Whether no more follow for this test."""


class Making(Enum):
    """Stages of making pytest's own report of a failure."""

    ASKED = "report"
    """The plugin asks whether to leave it out; then it is made."""
    MADE = "reported"
    """It has been made, or left out."""


Content = Progress | Making | AttemptBegun | PhaseRaised | AttemptEnded | TestAsked | Reports | ReportsEnded
"""The facts in a mark of the plugin."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark."""

    name: str
    """The name of the moment; empty: it has none."""
    is_called: bool
    """Whether the test itself named it."""
    content: Content | None
    """Its facts; None: it only names a moment, or nothing."""


def read_mark(text: str) -> Mark:
    """Return the mark in a text; one that is not ours only names a moment, or nothing."""
    try:
        data = read_json(text)
    except ValueError:
        return Mark("" if why_no_name(text) else text, is_called=False, content=None)
    if not isinstance(data, dict):
        return Mark("", is_called=False, content=None)
    name, do = data.get("name"), data.get("do")
    content: Content | None = None
    with suppress(ValueError):  # the program's own
        content = _content(do, data)
    if do and content is None:
        return Mark("", is_called=False, content=None)
    name = name if isinstance(name, str) else ""
    return Mark(name, is_called=bool(name) and not do, content=content)


def _content(do: object, data: dict[str, object]) -> Content | None:
    """Return the content of a mark. Raises ValueError."""
    match do:
        case "collected":
            return Progress.COLLECTED
        case "finished":
            return Progress.FINISHED
        case "report":
            return Making.ASKED
        case "reported":
            return Making.MADE
        case "item":
            return fields_as(TestAsked, data)
        case "say":
            return Reports("report" in data, data.get("report"))
        case "said":
            return ReportsEnded(data.get("last") is True)
        case "raised":
            return fields_as(PhaseRaised, data)
        case "begin":
            begun = fields_as(AttemptBegun, data)
            # It becomes the name of a directory.
            return None if {"/", "\0"} & {*begun.slug} or begun.slug in ("", ".", "..") else begun
        case "end":
            ended = fields_as(AttemptEnded, data)
            return ended if ended.outcome in _OUTCOMES else None
    return None
