"""Which code is the user's own: steps can pass over all other code."""

from __future__ import annotations

from fnmatch import fnmatchcase

from replaydbg.classes import NamedTuple
from replaydbg.installed import is_installed


class OwnCode(NamedTuple):
    """The rule by which lines count for a step."""

    patterns: tuple[str, ...] = ()
    """Shell patterns of files that are own code, behind `!` of files that are not; the last one that fits wins.

    Without a pattern that fits, code is own unless it is of the standard library or was installed.
    """

    def is_own(self, file: str, *, is_command: bool) -> bool:
        """Whether a file is own code, as the core finds it; `is_command`: the program was given with `-c`."""
        is_generated = file.startswith("<") and not (is_command and file == "<string>")
        return self.decided(file, default=not is_generated and not is_installed(file))

    def decided(self, file: str, *, default: bool) -> bool:
        """Whether the patterns make a file own code; `default`: no pattern fits."""
        is_own = default
        for each in self.patterns:
            if fnmatchcase(file, each.removeprefix("!")):
                is_own = not each.startswith("!")
        return is_own
