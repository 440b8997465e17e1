"""The options of commands that test commits in worktrees: `bisect commits` and `ci`."""

from __future__ import annotations

import argparse
from pathlib import Path

from replaydbg.commits.question import TIMEOUT
from replaydbg.errors import UsageError


def add_build(parser: argparse.ArgumentParser) -> None:
    """Declare what is run in a worktree before a commit is tested."""
    parser.add_argument("--build", default="", metavar="COMMAND", help="a shell command to run in each worktree first")


def add_timeout(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the time limit of `what`."""
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"limit for {what}; 0: no limit (default: {TIMEOUT:g})",
    )


def add_repository(parser: argparse.ArgumentParser, *, replay: str = "") -> None:
    """Declare what is taken from the repository; `replay` precedes the help of what only replays use."""
    parser.add_argument("--first-parent", action="store_true", help="treat each merge as one commit")
    parser.add_argument(
        "--with",
        dest="taken_along",
        action="append",
        type=Path,
        default=[],
        metavar="PATH",
        help="copy this file or directory from the checkout into each worktree; repeatable",
    )
    parser.add_argument(
        "--recorded-root",
        type=Path,
        metavar="DIR",
        help=f"{replay}the path of the repository when it was recorded",
    )
    parser.add_argument(
        "--data-from-commit",
        action="store_true",
        help=f"{replay}read tracked data files from each commit, not from the recording",
    )


def add_output(parser: argparse.ArgumentParser, *, recordings: str) -> None:
    """Declare how the result is printed; `recordings` are those about which there may be a notice."""
    parser.add_argument("--json", action="store_true", help="print data with a schema_version instead of text")
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help=f"show no progress, and no notice about {recordings} that you did not make",
    )


def check_commit_options(args: argparse.Namespace) -> None:
    """Raise UsageError if a shared option is out of its range."""
    if args.timeout < 0:
        raise UsageError(f"--timeout must be at least 0 seconds (got {args.timeout:g}).")


INTERRUPTED = "replaydbg: interrupted; the verdicts are saved, and the same command continues from there."
"""Printed on stderr when a search ends by Ctrl-C or a signal."""
