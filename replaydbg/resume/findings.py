"""The findings about the calls in flight, and the decision about each of them."""

from __future__ import annotations

from enum import Enum

from replaydbg.classes import dataclass
from replaydbg.events.values import Value
from replaydbg.resume.conversation import CallInFlight


class CallVerdict(Enum):
    """Whether a call in flight was made."""

    DONE = "done"
    REPEAT = "repeat"
    SKIP = "skip"
    """It is not known, and the user wants that it is not made."""
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding about a call in flight."""

    call: CallInFlight
    verdict: CallVerdict
    reason: str
    """Why, as a clause: `found on disk`."""
    value: Value = None
    """The value that it returns, if it is not made."""

    @property
    def is_made(self) -> bool:
        """Whether the call will be made, once a decision was taken."""
        return self.verdict not in (CallVerdict.DONE, CallVerdict.SKIP)


def repeat(call: CallInFlight, reason: str) -> Finding:
    """Return the finding that a call is to be made, again if it was made before."""
    return Finding(call, CallVerdict.REPEAT, reason)


def done(call: CallInFlight, reason: str, value: Value = None) -> Finding:
    """Return the finding that a call was made, and returned `value`."""
    return Finding(call, CallVerdict.DONE, reason, value)


def skipped(call: CallInFlight, reason: str, value: Value = None) -> Finding:
    """Return the decision that a call is not to be made, although nothing shows whether it was, and returns `value`."""
    return Finding(call, CallVerdict.SKIP, reason, value)


def unknown(call: CallInFlight, reason: str) -> Finding:
    """Return the finding that nothing shows whether a call was made."""
    return Finding(call, CallVerdict.UNKNOWN, reason)


def changed(call: CallInFlight, reason: str) -> Finding:
    """Return the finding that something else was done meanwhile."""
    return Finding(call, CallVerdict.CHANGED, reason)
