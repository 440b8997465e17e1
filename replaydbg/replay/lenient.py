"""Options of a replay of edited code: its sources, its time limit, and the expression to evaluate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from replaydbg.errors import UsageError

if TYPE_CHECKING:
    from replaydbg.log.reader import Recording
    from replaydbg.replay.facts import KnownPaths


class LenientBoot(TypedDict):
    """The fields for the core."""

    lenient: bool
    check: str | None
    cpu_seconds: int | None
    answers_to: int
    reseed: int
    facts: KnownPaths | None
    """None: unedited code makes no other requests."""
    data: list[bytes]
    sources: list[tuple[bytes, bytes]]
    edited: bool
    """Whether other code runs than was recorded."""


@dataclass(frozen=True, slots=True)
class Lenient:
    """A replay that searches the whole recording for answers to the program's requests.

    Events after the record END of the log are answers of last resort.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    """Directories of the recording, and where their modules (and the script) are read today.

    The program still sees the recorded names; files that it opens as data come from the recording. The first one that
    contains a file counts; an empty text instead of a directory of today: these files come from the recording.
    """
    check: str | None = None
    """An expression that is evaluated in `__main__` at the program's end, also after an exception."""
    cpu_seconds: int | None = None
    """CPU time limit of the edited program; if it takes longer, the result is inconclusive."""
    asked: str = ""
    """The question to the pytest plugin in the program, see `tested`."""
    answers_to: int = 0
    """No event after this one is used as an answer; 0: all may be."""

    data: frozenset[str] = frozenset()
    """Absolute paths of the recording below `sources` whose data is read from today's files."""
    reseed: int = 0
    """Other random numbers than recorded, the same ones for the same value; 0: as recorded."""

    def must_be_sound(self) -> None:
        """Raise UsageError if the check is not an expression."""
        if self.check is not None:
            check_expression(self.check)

    def as_boot(self, recording: Recording, *, current_source: bool) -> LenientBoot:
        """Return the fields for the core; `current_source`: today's source files run."""
        return {
            "lenient": True,
            "check": self.check,
            "cpu_seconds": self.cpu_seconds,
            "answers_to": self.answers_to,
            "reseed": self.reseed,
            "facts": _facts(recording) if current_source or self.sources else None,
            "data": sorted(os.fsencode(path) for path in self.data),
            "sources": [
                (os.fsencode(_plain(then)), os.fsencode(now and _plain(now))) for then, now in self.sources.items()
            ],
            "edited": self._is_edited(recording, current_source=current_source),
        }

    def _is_edited(self, recording: Recording, *, current_source: bool) -> bool:
        """Whether other code runs than was recorded: then a place in a computation may never be reached."""
        if not current_source and not self.sources:
            return False
        # Imported here: only edited code needs the search.
        from replaydbg.replay.changed import changed_sources

        return bool(changed_sources(recording, self.sources, only_moved=not current_source))


def _facts(recording: Recording) -> KnownPaths:
    # Imported here: only edited code needs it.
    from replaydbg.replay.facts import known_paths

    return known_paths(recording)


def check_expression(check: str) -> None:
    """Raise UsageError if it is not an expression."""
    try:
        compile(check, "<check>", "eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{check!r} is not a valid expression: {error}.") from None


def _plain(directory: str) -> str:
    return os.path.abspath(directory)  # noqa: PTH100 - as the program's own paths are written: links stay
