"""The parser of options: an invalid command line is reported as JSON, too, if that was asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import ClassVar, NoReturn

from replaydbg.errors import UsageError


class OptionParser(argparse.ArgumentParser):
    """Parses the options of a command, or of a part of one such as `bisect snapshots`."""

    report: ClassVar[Callable[[UsageError], None] | None] = None
    """Prints an error as JSON; None: that was not asked for. All parsers have it in common, those of parts, too."""
    usage_code = UsageError.exit_code
    """The exit code for an invalid command line."""

    def error(self, message: str) -> NoReturn:
        """Print how the command is used, and exit."""
        if OptionParser.report is not None:
            OptionParser.report(UsageError(f"{self.prog}: {message}"))
        self.print_usage(sys.stderr)
        self.exit(self.usage_code, f"{self.prog}: error: {message}\n")
