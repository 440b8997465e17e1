"""The parser of options: an invalid command line is reported as JSON, too, if that was asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, NoReturn

from replaydbg.errors import UsageError


class OptionParser(argparse.ArgumentParser):
    """Parses the options of a command, or of a part of one such as `bisect snapshots`."""

    report: ClassVar[Callable[[UsageError], None] | None] = None
    """Prints an error as JSON; None: that was not asked for. All parsers have it in common, those of parts, too."""
    usage_code = UsageError.exit_code
    """The exit code for an invalid command line."""

    def parse_anywhere(self, words: Sequence[str], into: argparse.Namespace) -> argparse.Namespace:
        """Parse a command line, as `parse_args`, with options also before an argument that may be missing.

        At the first option argparse takes an optional argument for missing: `heap REC --limit 3 @end` would be an
        error.
        """
        found, left = self.parse_known_args(words, copy(into))
        is_whole = any(each.nargs in (argparse.PARSER, argparse.REMAINDER) for each in self._get_positional_actions())
        if not is_whole and not all(each.startswith("-") for each in left):
            found, left = self.parse_known_intermixed_args(words, copy(into))
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Print how the command is used, and exit."""
        if OptionParser.report is not None:
            OptionParser.report(UsageError(f"{self.prog}: {message}"))
        self.print_usage(sys.stderr)
        self.exit(self.usage_code, f"{self.prog}: error: {message}\n")


class GivenOnce(argparse.Action):
    """Store the value; refuse a second one, which would replace it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Store the value, or end with a usage error."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "can be given only once")
        setattr(namespace, self.dest, values)
