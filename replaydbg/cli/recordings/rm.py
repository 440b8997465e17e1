"""`replaydbg rm`: delete recordings, and nothing else."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.errors import NotARecording, ReplaydbgError, UsageError
from replaydbg.log.files import DataFile
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.blocks import MAGIC
from replaydbg.log.unfinished_group import is_being_made
from replaydbg.remote.address import is_address, parse_address, shown
from replaydbg.render.recording_text import listing_text
from replaydbg.store.catalog import Catalog
from replaydbg.store.clearing import clear_store
from replaydbg.store.directory import GROUP, LIVE, SEALED, Store, member_path
from replaydbg.store.removing import remove_recording, writer_in
from replaydbg.store.tags import forget_tags, key_of, tagged_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--force", action="store_true", help="also recordings of programs that are still running")
    parser.add_argument("recordings", nargs="+", metavar="recording", help="a path, a name such as run-12, or latest")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Remove the recordings. All names are resolved before the first one is removed."""
    far = list(filter(is_address, args.recordings))
    if far:
        return _remove_far(far, args)
    store = the_store()
    # A dict: `latest` and its name may both be given.
    paths = dict.fromkeys(store.find_group(name) or store.resolve(name) for name in args.recordings)
    for path in paths:
        _require_recording(path)
        if not args.force:
            _require_end(path)
    runs = {path: _run_of(path) for path in paths}
    for path in paths:
        remove_recording(store, path)
        if not args.json:
            print(f"Removed {path}.", file=sys.stderr)
    _forget_tags(store, set(runs.values()))
    clear_store(store)
    if args.json:
        print_json({"removed": [str(path) for path in paths]})
    return 0


def _forget_tags(store: Store, runs: set[str]) -> None:
    """Remove the tags of recordings that are no longer in the store, except those that copies of them have."""
    tagged = runs & set(tagged_runs(store))
    if tagged:
        left = {row.run for row in Catalog(store, listing_text).rows()}
        for run in tagged - left:
            with suppress(OSError):  # they are those of a run that is no longer there
                forget_tags(store, run)


def _remove_far(names: list[str], args: argparse.Namespace) -> int:
    """Remove recordings of remote stores. All are looked up before the first one is removed."""
    if len(names) < len(args.recordings):
        raise UsageError("Recordings of this machine and of remote stores cannot be removed together.")
    # Imported here, with fsspec: most recordings are on this machine.
    from replaydbg.remote.listing import remove_remote

    removed = remove_remote(list(map(parse_address, names)))
    for each in removed if not args.json else ():
        print(f"Removed {each}. `replaydbg gc {shown(each.store)}` deletes what only it needed.", file=sys.stderr)
    if args.json:
        print_json({"removed": list(map(str, removed))})
    return 0


def _run_of(path: Path) -> str:
    """Return the key of a recording's tags, or of those of a group; empty: it cannot be read."""
    try:
        with open_recording(member_path(path, 1) if path.name.endswith(GROUP) else path) as recording:
            header = recording.header
            return key_of(header) if recording.header.process <= 1 else ""
    except ReplaydbgError:
        return ""


def _require_end(path: Path) -> None:
    """Raise UsageError if the program of a recording, or one of a group, is still running."""
    if is_being_made(path):
        raise UsageError(f"{str(path)!r} is just being made. --force removes it anyway.")
    process = writer_in(path)
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
