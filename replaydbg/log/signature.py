"""Detached signatures of recordings: a file beside the recording, which is verified when the recording is opened.

The signature is OpenSSH's, over the bytes of the file: `ssh-keygen -Y verify` checks it without replaydbg, and people
sign with the keys that they have. It is verified by `ssh-keygen`, which is started only if there is a signature.

*Rejected*: a signature over the index, which has no hashes of the blocks. *Rejected*: Ed25519 from a library, with keys
and files of trusted signers that nobody has yet.
"""

from __future__ import annotations

import os
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.config import user_signers_file
from replaydbg.errors import SignatureRefused
from replaydbg.log.files import signature_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAMESPACE = "replaydbg"
"""What signatures are made for: one for another purpose, such as a commit of git, is none of a recording."""

_MOST = 1 << 16
"""Bytes of a signature; those of common keys have a few hundred."""
_PROGRAM = "ssh-keygen"


class Signed(NamedTuple):
    """The signature of a recording, which matches it."""

    signer: str
    """The name of the signer in the user's file of signers; empty: the key is not in it, the signer is unknown."""
    key: str
    """The kind of the key and its fingerprint, such as `ED25519 SHA256:...`."""

    @property
    def is_trusted(self) -> bool:
        """Whether the user trusts the signer."""
        return bool(self.signer)

    def facts(self) -> dict[str, object]:
        """Return it as JSON data."""
        return {"signer": self.signer or None, "key": self.key, "trusted": self.is_trusted}

    def __str__(self) -> str:
        """Return who signed, in a few words."""
        return f"{self.signer} ({self.key})" if self.signer else f"an unknown signer ({self.key})"


_known: dict[tuple[object, ...], Signed] = {}
"""Signatures that were verified in this process: a session opens its recording many times."""


def verified(path: Path, fd: int) -> Signed | None:
    """Return the signature of the file `path`, open as `fd`; None: there is none.

    Raises SignatureRefused if it does not match the file, or cannot be verified.
    """
    data = _read(path)
    if data is None:
        return None
    found = os.fstat(fd)
    signers = _stamp(user_signers_file())
    key = (data, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, signers)
    if key not in _known:
        _known[key] = _verify(path, fd, data)
    return _known[key]


def _read(path: Path) -> bytes | None:
    """Return the bytes of the signature of a file; None: there is none. Raises SignatureRefused."""
    try:
        fd = os.open(signature_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SignatureRefused(str(path), f"cannot be read ({getattr(error, 'strerror', None) or error})") from error
    # Imported here: few recordings have a signature.
    import stat

    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SignatureRefused(str(path), "is not a regular file")
        data = os.read(fd, _MOST + 1)
    finally:
        os.close(fd)
    if len(data) > _MOST:
        raise SignatureRefused(str(path), "is too long to be one")
    return data


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _verify(path: Path, fd: int, data: bytes) -> Signed:
    signers = user_signers_file()
    # Not by its path: another file could take its place.
    signature = os.memfd_create("replaydbg-signature")
    try:
        os.write(signature, data)
        given = ["-n", NAMESPACE, "-s", f"/proc/self/fd/{signature}"]
        if signers.is_file():
            status, names = _run(path, ["find-principals", *given[2:], "-f", str(signers)], signature)
            # A line of the file may name several.
            for name in names.replace(",", "\n").split("\n") if status == 0 else ():
                status, said = _run(path, ["verify", *given, "-f", str(signers), "-I", name], signature, fd)
                if name and status == 0 and (key := _key_in(said)):
                    return Signed(name, key)
        # An expired key, or one that is trusted for something else only, is that of an unknown signer as well.
        status, said = _run(path, ["check-novalidate", *given], signature, fd)
    finally:
        os.close(signature)
    key = _key_in(said)
    if status or not key:
        raise SignatureRefused(
            str(path), "does not match: the recording, or the signature, is not as it was when it was signed"
        )
    return Signed("", key)


def _key_in(said: str) -> str:
    """Return kind and fingerprint of the key from the output of `ssh-keygen`; empty if no signature was found good."""
    first = said.partition("\n")[0]
    about, _, fingerprint = first.rpartition(" key ")
    is_good = first.startswith(f'Good "{NAMESPACE}" signature ') and fingerprint.startswith("SHA256:")
    return f"{about.rpartition(' with ')[2]} {fingerprint}" if is_good else ""


def _run(path: Path, words: Sequence[str], signature: int, fd: int | None = None) -> tuple[int, str]:
    """Run `ssh-keygen -Y` with the file on its standard input; return its status and output."""
    # Imported here: few recordings have a signature.
    import subprocess

    try:
        if fd is not None:
            os.lseek(fd, 0, os.SEEK_SET)  # the reader itself gives an offset each time
        done = subprocess.run(
            [_PROGRAM, "-Y", *words],
            stdin=fd if fd is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(signature,),
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except FileNotFoundError:
        raise SignatureRefused(
            str(path), "cannot be verified: ssh-keygen (of OpenSSH) is not installed, or not on PATH"
        ) from None
    except OSError as error:
        raise SignatureRefused(str(path), f"cannot be verified: ssh-keygen does not start ({error.strerror})") from None
    return done.returncode, done.stdout.decode("utf-8", "replace")
