"""Mask the secrets of a recording in other files about its run."""

from __future__ import annotations

from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.sealed.sections import SealedFile
from replaydbg.secrets.secret_pieces import is_long_piece, pieces_of
from replaydbg.secrets.secret_values import SHORTEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.secrets.masks import Masks


class RecordingMask:
    """Masks texts for good: the secrets in them that are masked in a recording, in all forms."""

    def __init__(self, path: Path, *, has_beginnings: bool = False) -> None:
        """`has_beginnings`: texts may be cut off, as in a snapshot."""
        words = secrets_masked_in(path)
        self._masks: Masks | None = None
        if words:
            # Imported here: most recordings have no secrets, and a machine that only reads has no compiled code.
            from replaydbg.secrets.forms import forms_of
            from replaydbg.secrets.masks import Masks

            masks = Masks(forms_of(words))
            self._masks = masks.with_beginnings() if has_beginnings else masks

    def masked(self, data: bytes) -> bytes:
        """Return data with the secrets masked."""
        return data if self._masks is None else self._masks.masked(data)

    def masked_text(self, text: str) -> str:
        """Return a text with the secrets masked."""
        if self._masks is None or not text:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self.masked(data)
        return text if masked == data else masked.decode("utf-8", "replace")


def masked_like(path: Path, data: bytes, *, has_beginnings: bool = False) -> bytes:
    """Return data with the secrets masked, for good, that are masked in the recording at `path`.

    `has_beginnings`: texts in it may be cut off, as in a snapshot.
    """
    return RecordingMask(path, has_beginnings=has_beginnings).masked(data)


def secrets_masked_in(path: Path) -> set[bytes]:
    """Return what is masked in a recording, as far as this user can see it; of a live one nothing is.

    Of pieces of secrets only the long ones: the others would be found everywhere.
    """
    if path.is_dir():
        return set()
    try:
        sealed = SealedFile(path)
    except ReplaydbgError:
        return set()
    try:
        patches = sealed.secrets.values()
        whole = {data for each in patches for _, data in each if len(data) >= SHORTEST}
        return whole | {piece for each in patches for piece in pieces_of(each) if is_long_piece(piece)}
    finally:
        sealed.close()
