"""The rows of a plan: what becomes of each resource when the program goes live."""

from __future__ import annotations

from enum import Enum

from replaydbg.classes import dataclass
from replaydbg.resources.kinds import OpenResource


class Fate(Enum):
    """The fate of a resource."""

    REOPENED = "reopened"
    """It is there again, as recorded."""
    LOST = "lost"
    """The program finds it as it must expect anyway: a connection was reset, a child was killed."""
    REFUSED = "refused"
    """It can be neither: the program does not go live, or with `--force` without it."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One resource and its fate."""

    kind: str
    """A noun in the plural, such as `files`."""
    fate: Fate
    text: str
    """The resource and where it is: `out.txt at byte 646`."""
    reason: str = ""
    """Why it is lost or refused, and what the program finds: `ECONNRESET at the next call`."""
    numbers: tuple[int, ...] = ()
    """Its descriptors."""
    differences: tuple[str, ...] = ()
    """How it differs on the disk from what was recorded, each as a sentence without a full stop."""
    opened: OpenResource | None = None
    """The descriptors' resource; None: it is none of a descriptor."""
    input_position: int | None = None
    """Of the standard input: the offset at which it continues; None: it stays where it is."""
    is_final: bool = False
    """Whether it is refused with `--force`, too."""


class CannotReopen(Exception):
    """A resource cannot be opened; its text is the reason, a clause."""


class AddressKept(CannotReopen):
    """A socket cannot have its address yet: only closed connections keep it."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(f"{address}: closed connections keep it")
