"""`replaydbg completion`: print a script with which a shell completes commands, options and names of recordings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.no_fence import add_no_fence
from replaydbg.cli.common.option_parser import OptionParser
from replaydbg.cli.main import COMMANDS, command_module
from replaydbg.errors import quoted
from replaydbg.store.directory import recordings_in

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
_RECORDINGS = frozenset({"bad", "good", "other", "others", "recording", "recordings"})
"""The destinations of arguments that are recordings."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=SHELLS, help="the shell that the script is for")
    what.add_argument("--recordings", action="store_true", help="print the names of recordings (used by the script)")


def run(args: argparse.Namespace) -> int:
    """Print the script, or what it asks for."""
    if args.recordings:
        print("\n".join(recording_names()))
        return 0
    # Imported here: what the script asks for must be quick. It writes scripts for shells that we do not know well.
    import shtab

    recordings = shtab.cmd("replaydbg completion --recordings")
    parser = all_commands()
    for action in _actions(parser):
        kind = (action.metavar if isinstance(action.metavar, str) else action.dest).upper()
        if not action.option_strings and action.dest in _RECORDINGS and "@" not in kind:
            action.complete = recordings  # type: ignore[attr-defined]
        elif kind.startswith("DIR"):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif kind.startswith(("FILE", "PATH", "PROGRAM")):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell))
    return 0


def all_commands() -> argparse.ArgumentParser:
    """Return one parser of all commands, as a user sees them."""
    parser = OptionParser(prog="replaydbg", description="Record a Python program once, then replay it exactly.")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    parts = parser.add_subparsers(metavar="COMMAND")
    for name, row in COMMANDS.items():
        part = parts.add_parser(name, help=row.text)
        command = command_module(name)
        command.add_arguments(part)
        if row.replays:
            add_no_fence(part)
        if name in ("record", "hunt"):
            part.add_argument("program", nargs="*", metavar="PROGRAM", help="the program, and its arguments")
    return parser


def recording_names() -> list[str]:
    """Return the names of recordings in the store and in the working directory.

    Those with characters that a shell would expand are left out: bash expands words that it is given for a completion.
    """
    names = [each.name for each in the_store().list()]
    names += sorted(map(str, recordings_in(Path())))
    return [each for each in ["latest", *names] if quoted(each) == each]


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:  # argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                yield from _actions(part)
        else:
            yield action
