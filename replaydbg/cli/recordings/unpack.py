"""`replaydbg unpack`: make a group of processes of the file that `replaydbg pack` wrote."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.errors import UsageError
from replaydbg.log.edit.group_pack import unpack_group
from replaydbg.log.files import forget_signature, named
from replaydbg.log.group import GROUP, Group, process_facts
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.blocks import MAGIC
from replaydbg.remote.address import is_address, shown
from replaydbg.secrets.age_keys import decrypt_file, is_encrypted, own_identities, recipient_of
from replaydbg.store.directory import PULLED, SEALED, Store
from replaydbg.store.leftovers import remove_leftovers_of, working_directory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", help="a file that `pack` made of a group of processes, or encrypted")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="NAME",
        help="the group to make, NAME.rdbgs (default: one in the store); of an encrypted recording its file",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Make the group, and print its name; of an encrypted file first what it has in it."""
    if is_address(args.file):
        raise UsageError(
            f"{shown(args.file)!r} is an address, and `unpack` takes a file that `pack` wrote: `replaydbg pull` "
            "fetches a recording or group of a remote store."
        )
    args.file = Path(args.file)
    if not is_encrypted(args.file):
        return _unpack(args, args.file)
    identities = own_identities()
    with working_directory(args.file.parent) as folder:
        plain = folder / args.file.name.removesuffix(".age")
        if not identities or not decrypt_file(args.file, plain, identities):
            yours = "you have none"
            if identities:
                yours = f"yours {'is' if len(identities) == 1 else 'are'} {' and '.join(map(recipient_of, identities))}"
            raise UsageError(f"{str(args.file)!r} is encrypted for other keys, or damaged ({yours}).")
        with plain.open("rb") as file:
            is_recording = file.read(len(MAGIC)) == MAGIC
        return _restore(args, plain) if is_recording else _unpack(args, plain)


def _restore(args: argparse.Namespace, plain: Path) -> int:
    """Keep the recording of one process that was encrypted."""
    name = args.output or args.file.with_name(plain.name)
    target = name.with_name(name.name.removesuffix(SEALED) + SEALED)
    with open_recording(plain):
        pass  # it is one
    plain.chmod(0o600)
    try:
        os.link(plain, target)
        forget_signature(target)
    except FileExistsError as error:
        raise UsageError(f"{str(target)!r} exists already.") from error
    if args.json:
        print_json({"path": str(target)})
    else:
        print(target)
    return 0


def _unpack(args: argparse.Namespace, file: Path) -> int:
    if args.output is not None:
        target = args.output.with_name(args.output.name.removesuffix(GROUP).removesuffix(SEALED) + GROUP)
        if os.path.lexists(target):
            raise UsageError(f"{str(target)!r} exists already.")
        remove_leftovers_of(target)
        with named(target):
            group, name = unpack_group(file, target), str(target)
    else:
        group, target = _unpack_into(the_store(), file)
        name = target.name.removesuffix(GROUP)
    if args.json:
        processes = [process_facts(each) for each in group.processes]
        print_json({"name": name, "path": str(target), "group": group.identity, "processes": processes})
    else:
        print(name)
    return 0


def _unpack_into(store: Store, file: Path) -> tuple[Group, Path]:
    """Make a group in the store; return its directory, too. Raises as `unpack_group`."""
    store.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The name is given last: whoever is killed before leaves nothing that is taken for a recording.
    partial = store.directory / f"{PULLED}{os.getpid()}"
    try:
        with named(store.directory):
            group = unpack_group(file, partial)
        target = store.create_group()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return group, target
