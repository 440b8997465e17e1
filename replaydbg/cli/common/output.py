"""Shared by the reading commands: opening the recording that the user named, JSON, and tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from replaydbg.cli.common.fetched_names import json_with_addresses, with_addresses
from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.config import is_colour_forced
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.log.group import group_directory
from replaydbg.log.reader import Recording, open_recording
from replaydbg.remote.address import is_address
from replaydbg.store.private import write_private


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="print data with a schema_version instead of text")


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Declare the argument for the recording that a command reads."""
    parser.add_argument("recording", help="a path, a name such as run-12, or latest")


def open_named(name: str) -> Recording:
    """Open the recording that the user named; of one that is kept elsewhere, only what is read is fetched."""
    if not is_address(name):
        return open_recording(the_store().resolve(name))
    from replaydbg.remote.fetched_files import on_demand

    return open_recording(on_demand(name))


def named_group(name: str) -> Path:
    """Return the directory of the group that the user named, by its name or by that of a process in it."""
    directory, path = group_or_recording(name)
    if directory is None:
        with open_recording(path):  # it says why it is no recording
            raise one_process(name)
    return directory


def group_or_recording(name: str) -> tuple[Path | None, Path]:
    """Return the directory of the group as `named_group`, None if it is in no group; and the path that was named."""
    store = the_store()
    directory = store.find_group(name)
    if directory is not None:
        return directory, directory
    path = store.resolve(name)
    return group_directory(path), path


def one_process(name: str) -> UsageError:
    """Return the error that a recording is in no group."""
    return UsageError(f"{name!r} is a recording of one process: the program had no children that were recorded.")


def print_json(facts: Mapping[str, object]) -> None:
    """Print `facts` as one JSON object."""
    print(json_with_addresses({"schema_version": SCHEMA_VERSION, **facts}, indent=2))


def write_file(path: str, data: bytes) -> None:
    """Write a file, completely or not at all. Raises UsageError."""
    try:
        write_private(Path(path), data)
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written: {error.strerror}.") from None


def print_problems(recording: Recording) -> None:
    """Print the problems of a recording on stderr."""
    for sentence in recording.problems:
        print(f"replaydbg: {recording.name}: {printable(with_addresses(sentence))}", file=sys.stderr)


def is_terminal() -> bool:
    """Whether stdout is a terminal, or is to be treated as one."""
    return (sys.stdout is not None and sys.stdout.isatty()) or is_colour_forced()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table: with rich on a terminal, else as a line for each row with tabs between the cells.

    `right` names the columns that hold numbers. The cells must be printable already.
    """
    if not is_terminal():
        for row in rows:
            print("\t".join(row))
        return
    # Imported here: rich takes 20 ms and more, and only a terminal shows its effects.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        # Text, not str: brackets in a recording's text are not markup.
        table.add_row(*map(Text, row))
    Console().print(table)
