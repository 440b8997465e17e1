"""The masks of a sealed recording: their places, for everybody, and the bytes there, for those who have a key.

Section `masked` is JSON: `recipients`, the public keys for which the secrets are encrypted, and `places`, of each
section a text: of each mask the bytes since the one before and its length, as varints, in base64. Section `secrets` is
encrypted by age to these recipients; inside it is compressed: of each section its name, the number of its masks, and
their bytes, each part with its length before it.
"""

from __future__ import annotations

import errno
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence

from replaydbg.classes import NamedTuple
from replaydbg.log.allowance import load_json
from replaydbg.log.coding.decode import Cursor, Malformed, Short
from replaydbg.log.coding.encode import varint
from replaydbg.log.sealed.shared import compressor, expand
from replaydbg.secrets.age_keys import decrypted, encrypted, has_age, own_identities
from replaydbg.secrets.patches import Patches

MOST = 1 << 26
"""Bytes of section `masked`: more than ten million masks."""


class Masked(NamedTuple):
    """The places of the masks, and the public keys for their bytes: known to everybody."""

    recipients: tuple[str, ...]
    """The public keys for which the secrets are encrypted."""
    places: Mapping[str, Sequence[tuple[int, int]]]
    """Of each section the offset and the length of each mask, in order."""


def masked_section(patches: Patches, recipients: Sequence[str]) -> bytes:
    """Return the section `masked`. Raises OSError if it is longer than MOST."""
    places = {name: b64encode(b"".join(_gaps(each))).decode() for name, each in patches.items()}
    data = json.dumps({"recipients": list(recipients), "places": places}).encode()
    if len(data) > MOST:  # nobody could read it, and the recording would be lost
        raise OSError(errno.EFBIG, "it has too many secrets")
    return data


def _gaps(patches: Sequence[tuple[int, bytes]]) -> Iterator[bytes]:
    last = 0
    for offset, data in patches:
        yield varint(offset - last) + varint(len(data))
        last = offset + len(data)


def secrets_section(patches: Patches, recipients: Sequence[str]) -> bytes:
    """Return the section `secrets`. Raises ValueError if a recipient is none."""
    data = b"".join(_packed(patches))
    return encrypted(varint(len(data)) + compressor()(data), recipients)


def _packed(patches: Patches) -> Iterator[bytes]:
    for name, each in patches.items():
        yield varint(len(name.encode())) + name.encode() + varint(len(each))
        for _, data in each:
            yield varint(len(data)) + data


def read_masked(data: bytes) -> Masked | None:
    """Return what the section `masked` says; None: it is damaged."""
    try:
        facts = load_json(data)
        recipients, places = facts["recipients"], facts["places"]
        if not all(type(each) is str and len(each) < 200 for each in recipients):
            return None
        found = {name: list(_places(b64decode(each, validate=True))) for name, each in places.items()}
    except (ValueError, TypeError, KeyError, AttributeError, Short, Malformed):
        return None
    return Masked(tuple(recipients), found)


def _places(data: bytes) -> Iterator[tuple[int, int]]:
    cursor, last = Cursor(data), 0
    while cursor.pos < len(data):
        offset, length = last + cursor.varint(), cursor.varint()
        if not length:
            raise Malformed("an empty mask")
        yield offset, length
        last = offset + length


def read_secrets(data: bytes, masked: Masked) -> Patches | None:
    """Return what was masked; None: this user has no key for it, or it is damaged."""
    identities = own_identities() if has_age() else []
    plain = decrypted(data, identities) if identities else None
    if plain is None:
        return None
    try:
        cursor = Cursor(plain)
        length = cursor.varint()
        whole = expand(plain[cursor.pos :], length) if length <= _most(masked) else None
        return None if whole is None else _patches(Cursor(whole), masked)
    except (Short, Malformed, UnicodeError):
        return None


def _most(masked: Masked) -> int:
    """Return how many bytes the secrets of these masks have at most, with the lengths between them."""
    names = sum(len(name.encode()) + 20 for name in masked.places)
    return names + sum(length + 10 for each in masked.places.values() for _, length in each)


def _patches(cursor: Cursor, masked: Masked) -> Patches | None:
    found: Patches = {}
    while cursor.pos < len(cursor.data):
        name = cursor.raw(cursor.varint()).decode()
        places = masked.places.get(name, ())
        if cursor.varint() != len(places):
            return None
        found[name] = []
        for offset, length in places:
            data = cursor.raw(cursor.varint())
            if len(data) != length:
                return None
            found[name].append((offset, data))
    return found if found.keys() == masked.places.keys() else None
