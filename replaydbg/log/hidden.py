"""Mask the secrets of a recording in other files about its run."""

from __future__ import annotations

from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.sealed.sections import SealedFile


def masked_like(path: Path, data: bytes, *, has_beginnings: bool = False) -> bytes:
    """Return data with the secrets masked, for good, that are masked in the recording at `path`.

    `has_beginnings`: texts in it may be cut off, as in a snapshot.
    """
    words = _secrets_of(path)
    if not words:
        return data
    # Imported here: most recordings have no secrets, and a machine that only reads has no compiled code.
    from replaydbg.secrets.forms import forms_of
    from replaydbg.secrets.masks import Masks

    masks = Masks(forms_of(words))
    return (masks.with_beginnings() if has_beginnings else masks).masked(data)


def _secrets_of(path: Path) -> set[bytes]:
    """Return what is masked in a recording, as far as this user can see it; of a live one nothing is."""
    if path.is_dir():
        return set()
    try:
        sealed = SealedFile(path)
    except ReplaydbgError:
        return set()
    try:
        return {data for patches in sealed.secrets.values() for _, data in patches}
    finally:
        sealed.close()
