"""Read the marks of a recorded session. The program can make marks of its own, which are not about a test."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum

from replaydbg.classes import dataclass
from replaydbg.log.allowance import load_json
from replaydbg.pytest_plugin.shared.marks_of_tests import AttemptBegun, AttemptEnded, PhaseRaised, TestAsked
from replaydbg.pytest_plugin.shared.shared_names import why_no_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Plain = TypeVar("_Plain", AttemptBegun, PhaseRaised, AttemptEnded)

_TYPES = {"str": str, "int": int, "bool": bool}
_OUTCOMES = ("passed", "skipped", "failed", "interrupted")


class Progress(Enum):
    """A mark without facts."""

    COLLECTED = "collected"
    """The state shared by all tests is complete."""
    FINISHED = "finished"
    """The tests are over."""
    MISGUESSED = "misguessed"
    """The orders of the launcher were a wrong guess, and pytest has ended before it did anything."""


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
        data = load_json(text.encode("utf-8", "surrogatepass"))
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
        case "misguessed":
            return Progress.MISGUESSED
        case "report":
            return Making.ASKED
        case "reported":
            return Making.MADE
        case "item":
            # Imported here: the launcher of a recorded pytest gets no such marks, and it would take 10 ms.
            from replaydbg.pytest_plugin.shared.json_reader import fields_as

            return fields_as(TestAsked, data)
        case "say":
            return Reports("report" in data, data.get("report"))
        case "said":
            return ReportsEnded(data.get("last") is True)
        case "raised":
            return _plain(PhaseRaised, data)
        case "begin":
            begun = _plain(AttemptBegun, data)
            # It becomes the name of a directory.
            return None if {"/", "\0"} & {*begun.slug} or begun.slug in ("", ".", "..") else begun
        case "end":
            ended = _plain(AttemptEnded, data)
            return ended if ended.outcome in _OUTCOMES else None
    return None


def _plain(kind: type[_Plain], data: dict[str, object]) -> _Plain:
    """Return a mark whose fields are plain values. Raises ValueError. `json_reader` would read it, too, but slowly."""
    found: dict[str, Any] = {}
    for name, annotation in kind.__annotations__.items():
        found[name] = data.get(name)
        if type(found[name]) is not _TYPES[annotation]:
            raise ValueError(f"{name!r} is missing, or not valid")
    return kind(**found)
