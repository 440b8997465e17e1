"""Mask on a page what is masked in the recordings that it is about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from replaydbg.log.hidden import secrets_masked_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.secrets.masks import Masks


class HiddenTexts:
    """Masks texts for good, with the secrets of one or more recordings, in all forms."""

    def __init__(self, recordings: Iterable[Path]) -> None:
        """Live directories are searched for secrets as if they were sealed now. Raises what reading them raises."""
        words: set[bytes] = set()
        self._masks: list[Masks] = []
        for path in recordings:
            if path.is_dir():
                self._masks += _masks_of_live(path)
            else:
                words |= secrets_masked_in(path)
        if words:
            # Imported here: most recordings have no secrets, and a machine that only reads has no compiled code.
            from replaydbg.secrets.forms import forms_of
            from replaydbg.secrets.masks import Masks

            # Values are cut off: what is left of a secret counts, too.
            self._masks.append(Masks(forms_of(words)).with_beginnings())

    def text(self, text: str) -> str:
        """Return a text with the secrets masked."""
        if not self._masks or not text:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self.data(data)
        return text if masked == data else masked.decode("utf-8", "replace")

    def data(self, data: bytes) -> bytes:
        """Return data with the secrets masked."""
        for masks in self._masks:
            data = masks.masked(data)
        return data

    def lines(self, lines: Iterable[str]) -> tuple[str, ...]:
        """Return lines with the secrets masked, also those that go on in the next line."""
        known = tuple(lines)
        if not self._masks:
            return known
        text = "\n".join(known)
        masked = self.text(text)
        if masked == text or len(masked) != len(text):
            return tuple(map(self.text, known)) if masked != text else known
        ends = [at for at, char in enumerate(text) if char == "\n"]
        return tuple(
            masked[first:last] for first, last in zip([0, *(at + 1 for at in ends)], [*ends, None], strict=True)
        )


def _masks_of_live(live: Path) -> list[Masks]:
    # Imported here: few recordings are live, and this searches their whole log.
    from replaydbg.record.hiding import hiding_of
    from replaydbg.secrets.masks import Masks

    hiding = hiding_of(live)
    if hiding is None:
        return []
    assert isinstance(hiding.masks, Masks), hiding
    return [hiding.masks.with_beginnings()]
