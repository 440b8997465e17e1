"""Frozen results of a bisection."""

from __future__ import annotations

from replaydbg.bisect.search import Answer
from replaydbg.classes import dataclass
from replaydbg.debugger.session_results import Moment
from replaydbg.events.verdict import Verdict

__all__ = ["Answer", "Bisected", "Culprit", "Probe", "VerdictChange", "Value", "Verdict"]


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of the predicate at one moment."""

    count: int
    moment: Moment
    verdict: Verdict
    reason: str
    """Why it is undecided, or which assertion failed; may be empty."""
    seconds: float
    is_check: bool
    """Whether it was only to see whether the rest of the run fits."""


@dataclass(frozen=True, slots=True)
class Value:
    """A part of the predicate's expression, before and after the line."""

    source: str
    before: str
    """As text; empty: it was not there."""
    after: str


@dataclass(frozen=True, slots=True)
class Culprit:
    """The line after which it was bad."""

    count: int
    moment: Moment
    """Before the line runs."""
    seen: int
    """The count of the first line before which it was seen to be bad."""
    seen_moment: Moment
    lane: int
    file: str
    line: int
    function: str
    source: str
    """The line's text; empty if it is not available."""
    before: Verdict
    """The verdict before the line: good, or undecided."""
    before_reason: str
    """Why it was undecided."""
    values: tuple[Value, ...]
    """The parts of the expression; those that the line changed come first."""
    events: tuple[int, ...]
    """The events during the line, at most 20. Whether a value depends on one is not known."""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A line after which it was bad, or good again."""

    count: int
    moment: Moment
    is_bad: bool
    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Bisected:
    """The result."""

    predicate: str
    """In words."""
    answer: Answer
    first: Moment
    last: Moment
    """Between which moments it was searched."""
    last_reason: str
    """Of what is never bad: why the last moment could not be decided; empty if it is good."""
    culprit: Culprit | None
    """None: there is none, or it is unknown."""
    last_good: Moment | None
    """The last checkpoint before it that was seen to be good; None: none was."""
    first_bad: Moment | None
    """The first checkpoint that was bad."""
    looks: tuple[Probe, ...]
    """In the order in which they were made."""
    places: int
    """The number of checkpoints in the range."""
    unfit: tuple[Moment, ...]
    """Moments that contradict a history that changes once: bad before the culprit, good after it."""
    passing: int
    """How often it was bad for a while, between the last good checkpoint and the culprit, and then good again."""
    first_passing: Moment | None
    """The first line after which it was."""
    is_exact: bool
    """Whether each line after the last good checkpoint was checked; if not, lines were bisected, too."""
    note: str = ""
    """A note about the result; may be empty."""
    healed: VerdictChange | None = None
    """The line after which the culprit's violation was over; None: it lasted to the end of its call, or of the search,
or that was not checked."""
    first_healed: VerdictChange | None = None
    """The line after which the first violation that was over before the culprit was over."""
    last_healed: VerdictChange | None = None
    """Without a culprit because it is good at the end: the line after which the last violation was over."""
    seen_at: Moment | None = None
    """Of a predicate that is evaluated at one place only: where it was seen to be bad."""
    in_module: bool = False
    """Whether the predicate was evaluated with the variables of a module, and not those of a function."""
    has_unseen: bool = False
    """Whether some lines could not be checked in a search of every line: it may have been bad there."""

    @property
    def is_monotone(self) -> bool:
        """Whether it changed once, as far as was looked."""
        return not self.unfit and not self.passing and not self.has_unseen and self.healed is None
