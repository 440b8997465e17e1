"""`replaydbg key`: print the public part of this user's key, by which others can encrypt for them."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.output import add_json, print_json
from replaydbg.errors import UsageError
from replaydbg.secrets.age_keys import identity_file, own_identity, recipient_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the key; one is made if there is none."""
    identity = own_identity(make=True)
    if identity is None:
        raise UsageError(f"{str(identity_file())!r} has no key of age, or others may read it.")
    if args.json:
        print_json({"recipient": recipient_of(identity), "path": str(identity_file())})
    else:
        print(recipient_of(identity))
    return 0
