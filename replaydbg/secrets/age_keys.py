"""The age key of this user, by which the secrets of recordings are encrypted.

age (https://age-encryption.org/v1) encrypts to several recipients, each of whom has a key of their own. Its library is
imported only where it is used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from replaydbg.config import user_key_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrage import x25519

AGE = b"age-encryption.org/v1"
"""How a file of age begins."""
_MOST = 4096
"""Bytes of a file with a key that are read."""


def identity_file() -> Path:
    """Return the path of this user's age key."""
    return user_key_file().with_name("identity.age")


def own_identity(*, make: bool = False) -> x25519.Identity | None:
    """Return this user's key; None: there is none, or the file is not private. With `make` it is made if missing.

    Raises OSError if it cannot be stored.
    """
    path = identity_file()
    found = _read(path)
    if found is None and make and not os.path.lexists(path):
        _make(path)
        found = _read(path)
    return found


def recipient_of(identity: x25519.Identity) -> str:
    """Return the public part of a key: whoever has it can encrypt, and cannot decrypt."""
    return str(identity.to_public())


def encrypted(data: bytes, recipients: Sequence[str]) -> bytes:
    """Return data encrypted to recipients. Raises ValueError if one of them is none."""
    import pyrage

    return bytes(pyrage.encrypt(data, _recipients(recipients)))


def check_recipients(recipients: Sequence[str]) -> None:
    """Raise ValueError if one of them is no public key."""
    _recipients(recipients)


def _recipients(recipients: Sequence[str]) -> list[x25519.Recipient]:
    import pyrage

    try:
        return [pyrage.x25519.Recipient.from_str(each) for each in recipients]
    except pyrage.RecipientError as error:
        raise ValueError(str(error)) from error


def encrypt_file(source: Path, target: Path, recipients: Sequence[str]) -> None:
    """Encrypt a file to recipients. Raises OSError, or ValueError if one of them is none."""
    import pyrage

    try:
        pyrage.encrypt_file(str(source), str(target), _recipients(recipients))
    except pyrage.EncryptError as error:
        raise OSError(str(error)) from error


def decrypt_file(source: Path, target: Path, identity: x25519.Identity) -> bool:
    """Decrypt a file; return False if the key is another one, or the file is damaged. Raises OSError."""
    import pyrage

    try:
        pyrage.decrypt_file(str(source), str(target), [identity])
    except pyrage.DecryptError:
        return False
    return True


def is_encrypted(path: Path) -> bool:
    """Whether a file is one of age; what cannot be read is not."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.read(fd, len(AGE)) == AGE
    except OSError:
        return False
    finally:
        os.close(fd)


def decrypted(data: bytes, identity: x25519.Identity) -> bytes | None:
    """Return what was encrypted; None: the key is another one, or the bytes are damaged."""
    import pyrage

    try:
        return bytes(pyrage.decrypt(data, [identity]))
    except pyrage.DecryptError:
        return None


def _read(path: Path) -> x25519.Identity | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        text = os.read(fd, _MOST)
    finally:
        os.close(fd)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return None  # others may have read it
    import pyrage

    for line in text.decode("ascii", "replace").splitlines():
        if line.startswith("AGE-SECRET-KEY-"):
            with suppress(pyrage.IdentityError):
                return pyrage.x25519.Identity.from_str(line.strip())
    return None


def _make(path: Path) -> None:
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb", buffering=0) as file:
            file.write(f"# public key: {identity.to_public()}\n{identity}\n".encode())
            os.fsync(fd)  # without it, what is encrypted is lost
        with suppress(FileExistsError):  # another recorder was quicker: its key is used
            os.link(partial, path)
    finally:
        partial.unlink()
