"""`replaydbg pack`: write one self-contained file for a recording that shares blocks, or that was never sealed.

A group of processes becomes one file as a whole; `replaydbg unpack` makes a group of it again.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.cli.common.secrets_of_live import secrets_of_live
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.log.edit.group_pack import pack_group
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.files import named, signature_path
from replaydbg.log.group import FACTS
from replaydbg.log.reader import open_recording
from replaydbg.secrets.age_keys import encrypt_file
from replaydbg.store.leftovers import remove_leftovers_of, working_directory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recording", help="a path, a name such as run-12 (a group: all of it), run-12/3 (one process), or latest"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
    parser.add_argument(
        "--to",
        action="append",
        default=[],
        metavar="KEY",
        help="encrypt the file with age, for whoever has this key (age1...); repeatable",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file, which depends on no other one."""
    store = the_store()
    group = store.find_group(args.recording)
    path = group or store.resolve(args.recording)
    if args.output.exists():
        raise UsageError(f"{str(args.output)!r} exists already.")
    remove_leftovers_of(args.output)
    with named(args.output):
        if args.to:
            size = _encrypted(path, args.output, args.to, is_group=group is not None)
        else:
            size = _packed(path, args.output, is_group=group is not None)
    signed = group / FACTS if group is not None else path
    if sys.stderr is not None and os.path.lexists(signature_path(signed)):
        print(
            f"replaydbg: {printable(str(args.output))!r} is not signed: its bytes are not those that were signed.",
            file=sys.stderr,
        )
    if args.json:
        print_json({"path": str(args.output), "size": size, "is_group": group is not None})
    else:
        print(args.output)
    return 0


def _packed(path: Path, output: Path, *, is_group: bool) -> int:
    """Write the file; return its size."""
    if is_group:
        return pack_group(path, output, secrets_of_live)
    with open_recording(path) as recording:
        return write_standalone(recording, output, secrets_of_live(path) if recording.is_live else None)


def _encrypted(path: Path, output: Path, recipients: list[str], *, is_group: bool) -> int:
    """Write the encrypted file; return its size. What is encrypted is on the disk meanwhile, for its owner alone."""
    with working_directory(output.parent) as folder:
        plain, encrypted = folder / output.name, folder / f"{output.name}.age"
        _packed(path, plain, is_group=is_group)
        try:
            encrypt_file(plain, encrypted, recipients)
        except ValueError as error:
            raise UsageError(f"--to needs a public key of age, such as age1... ({error}).") from error
        encrypted.chmod(0o600)
        os.link(encrypted, output)  # unlike a rename it replaces nothing
    return output.stat().st_size
