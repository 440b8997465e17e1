"""Check before a recording, or a group of processes, is resumed, and print the result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.errors import CannotResume
from replaydbg.events.show import printable
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.origin import is_own
from replaydbg.render.json_data.runs_json import record_facts
from replaydbg.render.record_summary import summary_lines
from replaydbg.store.directory import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from replaydbg.record.result import RecordResult


def check_own(paths: Iterable[Path], name: str) -> None:
    """Raise CannotResume for recordings that somebody else may have made; `name` is that of all of them in commands."""
    foreign = [path for path in paths if not is_own(path)]
    if not foreign:
        return
    with open_recording(foreign[0]) as recording:
        recording.check()  # only reading all of it shows damage
        is_damaged = bool(recording.damage)
    doubt = "it is damaged, so that nothing shows whether you recorded it with this installation"
    reason = doubt if is_damaged else "it was not recorded by you with this installation"
    raise CannotResume(name, f"{reason}, and its program would run with all your rights (--force goes on)")


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
