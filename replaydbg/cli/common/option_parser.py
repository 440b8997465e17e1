"""The parser of options: an invalid command line is reported as JSON, too, if that was asked for."""

from __future__ import annotations

import argparse
import json
import sys
from typing import NoReturn

from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.errors import UsageError


class OptionParser(argparse.ArgumentParser):
    """Parses the options of a command, or of a part of one such as `bisect snapshots`."""

    is_json = False
    """Whether the command line has `--json`. Of the class: each part of a command has a parser of its own."""
    usage_code = UsageError.exit_code
    """The exit code for an invalid command line."""

    def error(self, message: str) -> NoReturn:
        """Print how the command is used, and exit."""
        if self.is_json and sys.stdout is not None:
            problem = UsageError(f"{self.prog}: {message}")
            print(json.dumps({"schema_version": SCHEMA_VERSION, "error": problem.as_dict()}), flush=True)
        self.print_usage(sys.stderr)
        self.exit(self.usage_code, f"{self.prog}: error: {message}\n")
