"""Check before a recording, or a group of processes, is resumed, and print the result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.errors import CannotResume
from replaydbg.events.show import printable
from replaydbg.log.group import name_in_group
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.origin import MARK, is_own
from replaydbg.render.json_data.runs_json import record_facts
from replaydbg.render.record_summary import summary_lines
from replaydbg.store.directory import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from replaydbg.record.result import RecordResult


# The mark of a live directory is that of its place.
_MOVED = (
    "nothing shows that you recorded it with this installation (what is not sealed is recognized only in the directory "
    "in which it was recorded: move that, do not copy it)"
)
_UNSIGNED = (
    "nothing shows that you recorded it with this installation (it has no signature, as that of a process which was "
    "killed right after it was forked)"
)


def check_own(paths: Iterable[Path], name: str) -> None:
    """Raise CannotResume for recordings that somebody else may have made; `name` is that of all of them in commands."""
    foreign = [path for path in paths if not is_own(path)]
    if not foreign:
        return
    processes = tuple(filter(None, map(name_in_group, foreign)))
    reason = f"{_why_foreign(foreign[0])}, and its program would run with all your rights (--force goes on)"
    raise CannotResume(name, reason, processes)


def _why_foreign(path: Path) -> str:
    with open_recording(path) as recording:
        recording.check()  # only reading all of it shows damage
        if recording.damage:
            return "it is damaged, so that nothing shows whether you recorded it with this installation"
        if not recording.is_live:
            return "it was not recorded by you with this installation"
    return _MOVED if (path / MARK).exists() else _UNSIGNED


def print_wait(address: str) -> None:
    """Print which address is waited for."""
    text = f"waiting for {printable(address)}: closed connections of the program keep it, for about a minute"
    print(f"replaydbg: {text}", file=sys.stderr, flush=True)


def print_result(args: argparse.Namespace, result: RecordResult, store: Store, *, is_verbose: bool) -> None:
    """Print the summary of the continued recording, as the options want it."""
    if args.json:
        print(json.dumps({"schema_version": SCHEMA_VERSION, **record_facts(result)}), file=sys.stderr)
    elif is_verbose:
        lines = summary_lines(result, _name(result, store), is_held=False, output=args.output)
        print("\n".join(lines), file=sys.stderr)
    elif result.problem:
        print(f"replaydbg: {result.path}: {result.problem}.", file=sys.stderr)


def _name(result: RecordResult, store: Store) -> str:
    """Return the name for commands: that of the group, if several processes were recorded."""
    name = store.name_of(result.path)
    if result.group is None:
        return name
    return str(result.path.parent) if name == str(result.path) else name.removesuffix("/1")
