"""The masks of a sealed recording: their places, for everybody, and the bytes there, for those who have a key.

Section `masked` is JSON: `recipients`, the public keys for which the secrets are encrypted, and `places`, of each
section the offset and the length of each mask. Section `secrets` is encrypted by age to these recipients; inside it is
compressed: of each section its name, the number of its masks, and their bytes, each part with its length before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from replaydbg.classes import NamedTuple
from replaydbg.log.allowance import load_json
from replaydbg.log.coding.decode import Cursor, Malformed, Short
from replaydbg.log.coding.encode import varint
from replaydbg.log.sealed.shared import compressor, expand
from replaydbg.secrets.age_keys import decrypted, encrypted, own_identity
from replaydbg.secrets.patches import Patches

MOST = 1 << 26
"""Bytes of either section."""


class Masked(NamedTuple):
    """The places of the masks, and the public keys for their bytes: known to everybody."""

    recipients: tuple[str, ...]
    """The public keys for which the secrets are encrypted."""
    places: Mapping[str, Sequence[tuple[int, int]]]
    """Of each section the offset and the length of each mask, in order."""


def masked_section(patches: Patches, recipients: Sequence[str]) -> bytes:
    """Return the section `masked`."""
    places = {name: [(offset, len(data)) for offset, data in each] for name, each in patches.items()}
    return json.dumps({"recipients": list(recipients), "places": places}).encode()


def secrets_section(patches: Patches, recipients: Sequence[str]) -> bytes:
    """Return the section `secrets`. Raises ValueError if a recipient is none."""
    data = b"".join(_packed(patches))
    return encrypted(varint(len(data)) + compressor().compress(data), recipients)


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
        found = {name: [(offset, length) for offset, length in each] for name, each in places.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    for each in found.values():
        last = 0
        for offset, length in each:
            if type(offset) is not int or type(length) is not int or offset < last or length < 1:
                return None
            last = offset + length
    return Masked(tuple(recipients), found)


def read_secrets(data: bytes, masked: Masked) -> Patches | None:
    """Return what was masked; None: this user has no key for it, or it is damaged."""
    identity = own_identity()
    plain = decrypted(data, identity) if identity is not None else None
    if plain is None:
        return None
    try:
        cursor = Cursor(plain)
        length = cursor.varint()
        whole = expand(plain[cursor.pos :], length) if length <= MOST else None
        return None if whole is None else _patches(Cursor(whole), masked)
    except (Short, Malformed, UnicodeDecodeError):
        return None


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
