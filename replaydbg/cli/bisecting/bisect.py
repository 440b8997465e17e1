"""`replaydbg bisect`: one command with four subcommands, each a module of its own beside this one."""

from __future__ import annotations

import argparse
import importlib
import importlib.util

from replaydbg.cli.common.no_fence import add_no_fence
from replaydbg.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.cli.main import CommandModule

KINDS = {
    "snapshots": "find the line after which the run became bad",
    "recordings": "find what made a bad run differ from a good one",
    "cuts": "find the first global state of several processes in which an invariant does not hold",
    "commits": "find the commit that made a program fail",
}
"""The subcommands, each a module `bisect_<kind>` with `add_arguments(parser)` and `run(args)`, and one line of help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the four subcommands with their options."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, text in offered().items():
        kind: CommandModule = importlib.import_module(_module(name))
        own = kinds.add_parser(name, help=text, description=f"replaydbg bisect {name}: {text}.")
        kind.add_arguments(own)
        add_no_fence(own)
        own.set_defaults(run_kind=kind.run, takes_program=getattr(kind, "TAKES_PROGRAM", False))


def offered() -> dict[str, str]:
    """Return the kinds whose module is installed."""
    return {name: text for name, text in KINDS.items() if importlib.util.find_spec(_module(name)) is not None}


def split_words(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], list[str]]:
    """Split off the program behind `--`, which has options of its own; see `TAKES_PROGRAM` of a kind."""
    if "--" not in words:
        return words, []
    end = words.index("--")
    return words[:end], words[end + 1 :]


def run(args: argparse.Namespace) -> int:
    """Run the chosen subcommand and return the exit code."""
    if args.program and not args.takes_program:
        raise UsageError(f"`replaydbg bisect {args.kind}` takes no program.")
    code: int = args.run_kind(args)
    return code


def _module(kind: str) -> str:
    return f"replaydbg.cli.bisecting.bisect_{kind}"
