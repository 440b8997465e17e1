"""`replaydbg push`: send recordings to a remote store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.cli.common.secrets_of_live import secrets_of_live
from replaydbg.cli.common.transfer_progress import TransferProgress
from replaydbg.errors import UsageError
from replaydbg.log.edit.group_pack import pack_group, unpack_group
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.files import named
from replaydbg.log.group import group_directory
from replaydbg.log.reader import open_recording
from replaydbg.remote.address import check_name, parse_store, shown
from replaydbg.remote.push import PushChoices, Pushed, push
from replaydbg.remote.remote_store import RemoteStore
from replaydbg.render.measures import show_size
from replaydbg.store.directory import GROUP, LIVE, SEALED, Store
from replaydbg.store.leftovers import working_directory
from replaydbg.store.removing import writer_in


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recordings", nargs="+", metavar="recording", help="a path, a name such as run-12, or latest")
    parser.add_argument("store", metavar="URL", help="the remote store, such as s3://bucket/team or file:///mnt/shared")
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="the name there, of a single recording (default: its name here)"
    )
    parser.add_argument(
        "--check", action="store_true", help="read what is there already, and send again what was damaged"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Send the recordings, one after the other."""
    if args.name is not None and len(args.recordings) > 1:
        raise UsageError("--as names one recording, and there are several.")
    store = the_store()
    remote = RemoteStore(parse_store(args.store))
    named = [_named(store, each, args.name) for each in args.recordings]
    if len({name for name, _ in named}) < len(named):
        raise UsageError("Several of these recordings would have the same name there: send them one by one, with --as.")
    pushed = [(name, _push(path, remote, name, is_checked=args.check)) for name, path in named]
    if args.json:
        print_json(
            {"store": shown(remote.url), "recordings": [{"name": name, **each._asdict()} for name, each in pushed]}
        )
    return 0


_OF_TESTS = {"rec": "", "processes": "-processes"}
"""The names of recordings of tests, and what is added to the name of the test."""


def _named(store: Store, text: str, name: str | None) -> tuple[str, Path]:
    """Return the name in the remote store, and the recording, or the directory of a group."""
    path = store.find_group(text) or store.resolve(text)
    group = group_directory(path)  # of one process of it, as `run-12/3`
    own = f"{group.name.removesuffix(GROUP)}-{path.name}" if group is not None else path.name
    for ending in (GROUP, SEALED, LIVE):
        own = own.removesuffix(ending)
    if own in _OF_TESTS:
        # A test recording: its directory has the name of the test.
        own = f"{path.absolute().parent.name}{_OF_TESTS[own]}"
        own = "".join(each if each.isascii() and each.isalnum() else "-" for each in own).strip("-")[-100:]
    return check_name(own if name is None else name), path


def _push(path: Path, remote: RemoteStore, name: str, *, is_checked: bool) -> Pushed:
    process = writer_in(path)
    if process is not None:
        raise UsageError(f"{str(path)!r} is still being recorded (process {process}).")
    with _sealed(path, name) as sealed, TransferProgress(f"sending {name}") as progress:
        how = PushChoices(is_checked=is_checked, is_copy=sealed != path)
        pushed = push(sealed, remote, name, how=how, progress=progress.show)
    if pushed.is_new:
        already = pushed.size - pushed.sent_size
        there = f", {show_size(already)} of it were there" if already else ""
        print(f"Sent {shown(remote.url)}/{name} ({show_size(pushed.size)}{there}).", file=sys.stderr)
    else:
        again = f", and {show_size(pushed.sent_size)} of it were sent again" if pushed.sent_size else ""
        print(f"{shown(remote.url)}/{name} was there already{again}.", file=sys.stderr)
    return pushed


@contextmanager
def _sealed(path: Path, name: str) -> Iterator[Path]:
    """Yield the recording itself if it is sealed; otherwise a sealed copy, which is removed afterwards."""
    if path.name.endswith(GROUP) and path.is_dir():
        if not any(path.glob(f"*{LIVE}")):
            yield path
            return
        with working_directory(path.parent) as folder:
            packed, copy = folder / "packed", folder / f"{name}{GROUP}"
            with named(path.parent):
                pack_group(path, packed, secrets_of_live)
                unpack_group(packed, copy)
            yield copy
        return
    with open_recording(path) as recording:
        if not recording.is_live:
            yield path
            return
        with working_directory(path.parent) as folder:
            copy = folder / f"{name}{SEALED}"
            with named(path.parent):
                write_standalone(recording, copy, secrets_of_live(path))
            yield copy
