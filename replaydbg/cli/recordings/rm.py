"""`replaydbg rm`: delete recordings, and nothing else."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from replaydbg.cli.common.output import add_json, print_json, the_store
from replaydbg.errors import NotARecording, UsageError
from replaydbg.log.container import remove_live
from replaydbg.log.files import DataFile
from replaydbg.log.group import group_directory
from replaydbg.log.sealed.blocks import MAGIC
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.store.clearing import clear
from replaydbg.store.directory import GROUP, LIVE, SEALED, index_path
from replaydbg.store.process_check import writer_of
from replaydbg.store.removing import remove_group


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--force", action="store_true", help="also recordings of programs that are still running")
    parser.add_argument("recordings", nargs="+", metavar="recording", help="a path, a name such as run-12, or latest")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Remove the recordings. All names are resolved before the first one is removed."""
    store = the_store()
    # A dict: `latest` and its name may both be given.
    paths = dict.fromkeys(store.find_group(name) or store.resolve(name) for name in args.recordings)
    for path in paths:
        _require_recording(path)
        if not args.force:
            _require_end(path)
    for path in paths:
        if path.name.endswith(GROUP) and path.is_dir() and not path.is_symlink():
            remove_group(path)
        elif path.is_dir() and not path.is_symlink():
            remove_live(path)
        else:
            _remove_sealed(path)
        if not args.json:
            print(f"Removed {path}.", file=sys.stderr)
    if args.json:
        print_json({"removed": [str(path) for path in paths]})
    return 0


def _remove_sealed(path: Path) -> None:
    path.unlink()
    index_path(path).unlink(missing_ok=True)
    group = group_directory(path)
    if group is not None and (group / DIRECTORY).is_dir():
        with suppress(OSError):  # `gc` reports it
            clear(group)  # what only it used


def _require_end(path: Path) -> None:
    """Raise UsageError if the program of a recording, or one of a group, is still running."""
    for live in (path, *sorted(path.glob(f"*{LIVE}"))) if path.is_dir() else ():
        process = None
        with suppress(OSError):  # it has no log
            process = writer_of((live / "log").stat())
        if process is not None:
            raise UsageError(f"{str(path)!r} is still being recorded (process {process}). --force removes it anyway.")


def _require_recording(path: Path) -> None:
    """Raise NotARecording if `path` was never a recording; a damaged one may be removed."""
    if path.suffix in (SEALED, LIVE, GROUP):
        return
    if path.is_dir():
        if not (path / "header.json").is_file() or not (path / "log").is_file():
            raise NotARecording(str(path), "it is a directory without header.json and log")
        return
    with DataFile(path) as file:
        if file.read(0, len(MAGIC)) != MAGIC:
            raise NotARecording(str(path), "its first bytes are not those of a recording")
