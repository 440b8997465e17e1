"""`replaydbg sign`: write a detached signature beside a recording, with a key of SSH."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from replaydbg.cli.common.output import add_json, group_or_recording, print_json
from replaydbg.config import user_signers_file
from replaydbg.errors import Corrupt, UsageError
from replaydbg.events.show import printable
from replaydbg.log.files import DataFile, signature_path
from replaydbg.log.group import FACTS, read_group
from replaydbg.log.reader import open_recording
from replaydbg.log.signature import NAMESPACE, Signed, verified
from replaydbg.remote.address import is_address, shown
from replaydbg.store.directory import LIVE, member_path
from replaydbg.store.private import write_private

_KEYS = ("id_ed25519", "id_ed25519_sk", "id_ecdsa", "id_ecdsa_sk", "id_rsa")
"""The names of keys in ~/.ssh, in the order in which ssh tries the better ones first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12 (a group: all of it), or latest")
    parser.add_argument(
        "--key",
        type=Path,
        metavar="FILE",
        help="the private key, or a public one whose private key the agent has (default: the first one in ~/.ssh)",
    )
    parser.add_argument("--force", action="store_true", help="replace a signature")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Sign the file of a recording, or all files of a group."""
    if is_address(args.recording):
        raise UsageError(
            f"{shown(args.recording)!r} is in a remote store, where files never change: sign the recording first, and "
            "send it with its signature (`replaydbg push`)."
        )
    group, path = group_or_recording(args.recording)
    is_group = group is not None and group == path
    files = _files_of_group(path) if is_group else [path]
    for file in files:
        if os.path.lexists(signature_path(file)) and not args.force:
            raise UsageError(f"{str(signature_path(file))!r} exists already. --force replaces it.")
    key = args.key if args.key is not None else _own_key()
    if not key.is_file():
        raise UsageError(f"--key cannot be {str(key)!r}: there is no such file.")
    for file in files:
        if file.name != FACTS:
            _check(file)
    signatures = [_signature_of(file, key) for file in files]
    for file, data in zip(files, signatures, strict=True):
        write_private(signature_path(file), data)
    signed = _verified(files[0])
    if args.json:
        print_json({"signatures": [str(signature_path(file)) for file in files], **signed.facts()})
        return 0
    for file in files:
        print(signature_path(file))
    if not signed.is_trusted:
        _explain_trust(signed, key)
    return 0


def _files_of_group(directory: Path) -> list[Path]:
    """Return the list of a group's processes, and their recordings. Raises UsageError if one is not sealed."""
    group = read_group(directory)
    if not group.is_complete:
        raise UsageError(f"{str(directory)!r} is not complete: its processes run, or were killed. It cannot be signed.")
    members = [member_path(directory, each.number) for each in group.processes if each.recording is not None]
    return [directory / FACTS, *members]


def _check(file: Path) -> None:
    """Raise UsageError or Corrupt if a recording cannot be vouched for: it is not sealed, or damaged."""
    if file.is_dir() or file.name.endswith(LIVE):
        raise UsageError(f"{str(file)!r} is not sealed: only a complete recording can be signed.")
    # A signature that is replaced does not matter: it may be that of an earlier file.
    with open_recording(file, with_signature=False) as recording:
        recording.check()
        if recording.damage:
            raise Corrupt(str(file), recording.damage[0].rstrip("."))


def _own_key() -> Path:
    folder = Path("~/.ssh").expanduser()
    found = next((folder / name for name in _KEYS if (folder / name).is_file()), None)
    if found is None:
        raise UsageError("There is no key in ~/.ssh: give one with --key FILE, or make one with `ssh-keygen`.")
    return found


def _signature_of(file: Path, key: Path) -> bytes:
    """Return the signature of a file. Raises UsageError if `ssh-keygen` does not make one."""
    command = ["ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key)]
    try:
        with DataFile(file) as data:
            # It asks for a passphrase at the terminal itself.
            done = subprocess.run(command, stdin=data.fileno(), capture_output=True, check=False)
    except FileNotFoundError:
        raise UsageError("Signing needs ssh-keygen (of OpenSSH), which is not installed, or not on PATH.") from None
    if done.returncode or not done.stdout:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
        raise UsageError(f"ssh-keygen cannot sign with {str(key)!r}: {lines[-1].rstrip('.')}.")
    return done.stdout


def _verified(file: Path) -> Signed:
    with DataFile(file) as data:
        signed = verified(file, data.fileno())
    assert signed is not None, file
    return signed


def _explain_trust(signed: Signed, key: Path) -> None:
    """Print the line with which somebody trusts this signer."""
    public = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    try:
        kind, text, *_ = public.read_text(encoding="utf-8").split()
        line = f'NAME namespaces="{NAMESPACE}" {kind} {text}'
    except (OSError, ValueError):
        line = f'NAME namespaces="{NAMESPACE}" and the public key'
    print(
        f"replaydbg: {printable(signed.key)} is not a trusted signer here. Whoever trusts it adds this line to "
        f"{str(user_signers_file())!r}: {printable(line)}",
        file=sys.stderr,
    )
