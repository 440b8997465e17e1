"""The age keys of this user, by which the secrets of recordings are encrypted.

The file can have several, each on its own line, as that of age: new secrets are encrypted for the first one, and all
are tried for those that exist. So a key can be replaced.

age (https://age-encryption.org/v1) encrypts to several recipients, each of whom has a key of their own. Its library is
imported only where it is used. Each function that uses it raises UsageError where there is none, as on PyPy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from replaydbg.config import user_key_file
from replaydbg.errors import Corrupt, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from pyrage import x25519

AGE = b"age-encryption.org/v1"
"""How a file of age begins."""
_MOST = 1 << 16
"""Bytes of a file with keys that are read: hundreds of them."""
_SYSTEM_ERROR = re.compile(r"\(os error ([0-9]+)\)|\[Errno ([0-9]+)\]")
"""How age's library reports an error of the system: as a text, with its number."""


def has_age() -> bool:
    """Whether this Python has the library of age, without which no key can be used."""
    try:
        _age()
    except UsageError:
        return False
    return True


def _age() -> ModuleType:
    """Return the library. Raises UsageError."""
    try:
        import pyrage
    except ImportError as error:
        raise UsageError(f"Keys need the package pyrage, which this Python does not have ({error}).") from None
    module: ModuleType = pyrage
    return module


def identity_file() -> Path:
    """Return the path of this user's age key."""
    return user_key_file().with_name("identity.age")


def own_identity(*, make: bool = False) -> x25519.Identity | None:
    """Return this user's key for new secrets; None as for `own_identities`. With `make` it is made if missing.

    Raises OSError if it cannot be stored.
    """
    found = own_identities()
    if not found and make and not os.path.lexists(identity_file()):
        _make(identity_file())
        found = own_identities()
    return found[0] if found else None


def own_identities() -> list[x25519.Identity]:
    """Return this user's keys in their order; none if there is no file, or it is not private, or has no key."""
    return _read(identity_file())


def recipient_of(identity: x25519.Identity) -> str:
    """Return the public part of a key: whoever has it can encrypt, and cannot decrypt."""
    return str(identity.to_public())


def encrypted(data: bytes, recipients: Sequence[str]) -> bytes:
    """Return data encrypted to recipients. Raises ValueError if one of them is none."""
    pyrage = _age()

    return bytes(pyrage.encrypt(data, _recipients(recipients)))


def check_recipients(recipients: Sequence[str]) -> None:
    """Raise ValueError if one of them is no public key."""
    _recipients(recipients)


def _recipients(recipients: Sequence[str]) -> list[x25519.Recipient]:
    pyrage = _age()

    try:
        return [pyrage.x25519.Recipient.from_str(each) for each in recipients]
    except pyrage.RecipientError as error:
        raise ValueError(str(error)) from error


def encrypt_file(source: Path, target: Path, recipients: Sequence[str]) -> None:
    """Encrypt a file to recipients. Raises OSError, or ValueError if one of them is none."""
    pyrage = _age()

    keys = _recipients(recipients)
    try:
        # Our own files: pyrage.encrypt_file loses the error if the last bytes do not fit on the disk.
        with source.open("rb") as read, target.open("wb") as written:
            pyrage.encrypt_io(read, written, keys)
    except (pyrage.EncryptError, OSError) as error:
        raise _of_system(error, target) or OSError(str(error)) from error


def decrypt_file(source: Path, target: Path, identities: Sequence[x25519.Identity]) -> bool:
    """Decrypt a file; return False if the keys are others, or its beginning is damaged.

    Raises Corrupt if the rest is damaged; OSError.
    """
    pyrage = _age()

    try:
        pyrage.decrypt_file(str(source), str(target), list(identities))
    except pyrage.DecryptError:
        return False
    except OSError as error:
        reason = "what is encrypted in it was changed or cut off"
        raise _of_system(error, target) or Corrupt(str(source), reason) from error
    return True


def _of_system(error: Exception, target: Path) -> OSError | None:
    """Return the error of the system that age's library reports as a text; None: it is one of its own."""
    match = _SYSTEM_ERROR.search(str(error))
    if match is None:
        return None
    number = int(match[1] or match[2])
    return OSError(number, os.strerror(number), str(target))


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


def decrypted(data: bytes, identities: Sequence[x25519.Identity]) -> bytes | None:
    """Return what was encrypted; None: the keys are others, or the bytes are damaged."""
    pyrage = _age()

    try:
        return bytes(pyrage.decrypt(data, list(identities)))
    except pyrage.DecryptError:
        return None


def _read(path: Path) -> list[x25519.Identity]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        found = os.fstat(fd)
        text = os.read(fd, _MOST)
    except OSError:
        return []  # a directory is in its place, for instance
    finally:
        os.close(fd)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return []  # others may have read it
    pyrage = _age()

    identities = []
    for line in text.decode("ascii", "replace").splitlines():
        if line.startswith("AGE-SECRET-KEY-"):
            with suppress(pyrage.IdentityError):
                identities.append(pyrage.x25519.Identity.from_str(line.strip()))
    return identities


def _make(path: Path) -> None:
    pyrage = _age()

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
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not that of the partial file, and never none
        raise
    finally:
        partial.unlink()
