"""`replaydbg redact`: copy a recording, or a group, with pseudonyms in the place of its secrets."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, open_named, print_json
from replaydbg.config import load_settings
from replaydbg.errors import UsageError
from replaydbg.groups.opened_group import OpenedGroup, open_member
from replaydbg.log.files import named
from replaydbg.log.group import GROUP
from replaydbg.log.reader import Recording
from replaydbg.redaction.proven_copy import Redacted
from replaydbg.redaction.redacted_copy import redact
from replaydbg.redaction.redacted_group import redact_group
from replaydbg.secrets.user_patterns import patterns_in_header, searching_for
from replaydbg.store.directory import SEALED
from replaydbg.store.leftovers import remove_leftovers_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12 (a group: all of it), or latest")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the file to write; of a group its directory, NAME.rdbgs",
    )
    parser.add_argument(
        "--derived",
        action="store_true",
        help="accept output that is computed from a secret, such as a signature: the copy writes other bytes there",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the copy, once replays have proven it."""
    group = the_store().find_group(args.recording)
    target: Path = args.output
    if group is not None:
        target = target.with_name(target.name.removesuffix(GROUP).removesuffix(SEALED) + GROUP)
    if os.path.lexists(target):
        raise UsageError(f"{str(target)!r} exists already.")
    remove_leftovers_of(target)
    # Also the patterns of today: one that was forgotten may be the reason for a copy.
    own = load_settings().secret_patterns
    if group is not None:
        with named(target), searching_for([*own, *_patterns_of_group(group)]):
            made = redact_group(group, target, group.name.removesuffix(GROUP), may_derive=args.derived)
    else:
        with open_named(args.recording) as recording, named(target):
            with searching_for([*own, *_patterns_of(recording)]):
                made = redact(recording, target, recording.name, may_derive=args.derived)
    if args.json:
        print_json(_facts(made, target, is_group=group is not None))
    else:
        print(target)
        print(f"replaydbg: {_summary(made)}", file=sys.stderr)
    return 0


def _patterns_of(recording: Recording) -> tuple[str, ...]:
    """Return the user's patterns by which a recording was made."""
    return patterns_in_header(b"".join(recording.pieces("header")))


def _patterns_of_group(directory: Path) -> set[str]:
    group = OpenedGroup(directory).group
    found: set[str] = set()
    for process in group.processes:
        if process.recording is not None:
            with open_member(directory, group, process) as member:
                found.update(_patterns_of(member))
    return found


def _facts(made: Redacted, target: Path, *, is_group: bool) -> dict[str, object]:
    return {
        "path": str(target),
        "size": made.size,
        "secrets": made.secrets,
        "events": made.events,
        "is_group": is_group,
        "processes": made.processes,
        "derived": made.derived,
    }


def _summary(made: Redacted) -> str:
    plural = "s" * (made.secrets != 1)
    of_each = f" in {made.processes} processes" if made.processes != 1 else ""
    outputs = "output is" if made.derived == 1 else "outputs are"
    derived = f"; {made.derived:,} {outputs} computed from secrets, and others in the copy" if made.derived else ""
    proven = f"a replay of {made.events:,} events{of_each} agrees with the copy"
    return f"{made.secrets:,} secret{plural} replaced; {proven}{derived}"
