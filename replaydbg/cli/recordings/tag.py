"""`replaydbg tag`: add or remove tags of a recording, by which `ls` finds it and `gc` can keep it."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.log.reader import open_recording
from replaydbg.remote.address import is_address, shown
from replaydbg.store.tags import PINNED, change_tags, check_tag, key_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a name such as run-12, or latest")
    parser.add_argument(
        "tags",
        nargs="*",
        metavar="TAG",
        help=f"a tag to add; the rule {PINNED!r} of gc keeps recordings that have the tag {PINNED!r}",
    )
    parser.add_argument("--remove", action="append", default=[], metavar="TAG", help="a tag to remove")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Change the tags, and show them."""
    if is_address(args.recording):
        raise UsageError(
            f"{shown(args.recording)!r} is in a remote store, and tags are kept beside recordings of this machine: "
            "fetch it with `replaydbg pull` first."
        )
    store = the_store()
    stored = store.named(args.recording)
    if stored is None:
        raise UsageError(f"{args.recording!r} is not a recording of the store in {store.directory}.")
    with open_recording(stored.path) as recording:
        run_id = key_of(recording.header)
    removed, added = (set(map(check_tag, each)) for each in (args.remove, args.tags))
    tags = change_tags(store, stored.name, run_id, lambda before: before - removed | added)
    if args.json:
        print_json({"recording": stored.name, "tags": list(tags)})
    else:
        print(f"{printable(stored.name)}: {', '.join(tags) or 'no tags'}")
    return 0
