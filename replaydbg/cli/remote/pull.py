"""`replaydbg pull`: fetch a recording from a remote store."""

from __future__ import annotations

import argparse
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.cli.common.transfer_progress import TransferProgress
from replaydbg.errors import UsageError
from replaydbg.remote.address import parse_address
from replaydbg.remote.pull import pull, pull_to
from replaydbg.remote.remote_recording import RemoteRecording
from replaydbg.store.directory import GROUP, SEALED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", metavar="URL/NAME", help="such as s3://bucket/team/run-12")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="NAME", help="the file, or the group, to make (default: one in the store)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Fetch the recording, and print its name here."""
    address = parse_address(args.recording)
    if address.process:
        raise UsageError(f"A group is fetched as a whole: leave out '/{address.process}'.")
    recording = RemoteRecording(address)
    store = the_store()
    with TransferProgress(f"fetching {address.name}") as progress:
        if args.output is None:
            path = pull(recording, store, progress.show)
        else:
            try:
                path = pull_to(recording, args.output, progress.show)
            except FileExistsError as error:
                raise UsageError(f"{str(error.filename or error)!r} exists already.") from error
    name = path.name.removesuffix(GROUP).removesuffix(SEALED) if args.output is None else str(path)
    if args.json:
        print_json({"name": name, "path": str(path), "size": recording.index.size})
    else:
        print(name)
    return 0
