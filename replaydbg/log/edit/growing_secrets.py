"""Mask the secrets of a recording that is still being written, out of which others are cut.

A part of it is packed once, for all recordings that are cut out later: so it is masked when it is packed, by what is
known of its secrets then. They are found where their telling name or form is, which is before they are used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from replaydbg.log.container import Hiding
from replaydbg.log.edit.content_parts import Contents
from replaydbg.log.edit.joined_secrets import JoinedSecrets
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.native.finding import find
from replaydbg.secrets.masks import MASK, Masks
from replaydbg.secrets.patches import Patches
from replaydbg.secrets.secret_pieces import short_parts
from replaydbg.secrets.secret_rules import WIDEST, secrets_in
from replaydbg.secrets.user_patterns import current_patterns, searching_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.content_parts import Pieces


class GrowingSecrets:
    """The secrets that have been found so far, and what was masked."""

    def __init__(self, secrets: Iterable[bytes], recipients: Iterable[str]) -> None:
        """`secrets` are those in the environment, `recipients` the public keys for which they are encrypted.

        The user's patterns that are in effect now are in effect for all that follows.
        """
        self._secrets: set[bytes] = set()
        self._seen: dict[Path, int] = {}
        """How much of each file is known."""
        self._words: tuple[bytes, ...] = ()
        """With long pieces of them."""
        self._patches: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
        self._places: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        """Of each section the pieces of secrets: first byte, and the one behind the last."""
        self._forms: tuple[bytes, ...] = ()
        self._known_forms: set[bytes] = set()
        """Those whose pieces were searched."""
        self._searched: dict[str, int] = {}
        """How many bytes of each section were searched for pieces."""
        self._contents = Contents(_none)
        self._joined, self._joined_end = JoinedSecrets(self._contents), LOG_HEADER
        """Those that the program received in several values, and up to where the log was read for them."""
        self._recipients = tuple(recipients)
        self._patterns = current_patterns()
        self._margin = 4 * WIDEST  # of what is still to be found in UTF-32
        self.learn(secrets)

    @property
    def words(self) -> tuple[bytes, ...]:
        """All forms of all secrets, and long pieces of them; the same object as long as nothing is added."""
        return self._words

    @property
    def margin(self) -> int:
        """How many bytes before and behind a part of a section are needed to find the secrets in it."""
        return self._margin

    def learn(self, secrets: Iterable[bytes]) -> None:
        """Add secrets."""
        new = set(secrets) - self._secrets
        if new:
            # Imported here: most runs have no secrets.
            from replaydbg.secrets.forms import forms_of

            self._secrets |= new
            forms = forms_of(new)
            self._forms = tuple(sorted({*self._forms, *forms}))
            self._add_words(forms)

    def _add_words(self, new: Iterable[bytes]) -> None:
        words = {*self._words, *new}
        if len(words) == len(self._words):
            return
        self._words = tuple(sorted(words))
        self._margin = max([self._margin, *map(len, self._words)])

    def learn_in(self, data: bytes) -> None:
        """Add the secrets in data."""
        with searching_for(self._patterns):
            self.learn(secrets_in(data))

    def learn_from(self, path: Path, end: int | None = None) -> None:
        """Add the secrets in a file that grows, up to byte `end`, or what it has. Raises OSError."""
        seen = self._seen.get(path, 0)
        with path.open("rb") as file:
            file.seek(max(seen - WIDEST, 0))
            data = file.read() if end is None else file.read(max(end - file.tell(), 0))
        self.learn_in(data)
        self._seen[path] = max(seen - WIDEST, 0) + len(data)

    def learn_pieces(self, pieces: Pieces, lengths: Mapping[str, int]) -> None:
        """Find the secrets that the program received in several pieces, in sections that have so many bytes by now."""
        # Imported here: most runs have no secrets.
        from replaydbg.log.edit.split_secrets import split_secrets, words_in

        self._contents.pieces = pieces
        for piece in pieces("log", self._joined_end):
            self._joined.add(piece)
            self._joined_end += len(piece)
        self.learn(self._joined.found())
        if self._forms:
            known, new = self._known_forms, tuple(set(self._forms) - self._known_forms)
            found = split_secrets(known, pieces, self._searched) + split_secrets(new, pieces)
            self._known_forms = {*known, *new}
            self._add_words(words_in(found))
            for each in found:
                self._places[each.section].add((each.at, each.at + each.end - each.start))
        self._searched = dict(lengths)

    def has_any(self, data: bytes) -> bool:
        """Whether a secret is in data."""
        return bool(self._words) and bool(find(self._words, data))

    def masked(self, data: bytes, *, has_beginnings: bool = False) -> bytes:
        """Return data with the secrets masked for good; `has_beginnings`: texts in it may be cut off."""
        if not self._words:
            return data
        masks = Masks(self._words)
        return (masks.with_beginnings() if has_beginnings else masks).masked(data)

    def hide(self, section: str, data: bytes, at: int, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end` of a section masked.

        `data`, which begins at `at`, has them and what is before and behind them.
        """
        self.learn_in(data)
        hidden = bytearray(data[start - at : end - at])
        for offset, word in find(self._words, data) if self._words else ():
            low, high = max(at + offset, start), min(at + offset + len(self._words[word]), end)
            if low < high:
                self._patches[section][low] = max(
                    self._patches[section].get(low, b""), data[low - at : high - at], key=len
                )
                hidden[low - start : high - start] = MASK * (high - low)
        for first, last in self._places[section]:
            for low, high in short_parts(max(first, start), min(last, end)):
                self._patches[section].setdefault(low, data[low - at : high - at])
                hidden[low - start : high - start] = MASK * (high - low)
        return bytes(hidden)

    def hiding(self, lengths: Mapping[str, int]) -> Hiding:
        """Return what is masked in a recording that has so many bytes of each section."""
        return Hiding(CutMasks(self._words, self._before(lengths)), self._recipients)

    def _before(self, lengths: Mapping[str, int]) -> Patches:
        found: Patches = {}
        for name, length in lengths.items():
            last = 0
            for at, data in sorted(self._patches[name].items()):
                part = data[max(last - at, 0) : max(length - at, 0)]  # what other forms of it have covered is there
                if part:
                    start = max(at, last)
                    found.setdefault(name, []).append((start, part))
                    last = start + len(part)
        return found


def _none(name: str, start: int = 0) -> Iterator[bytes]:
    """Return nothing of a section: none was written yet."""
    return iter(())


class CutMasks:
    """Masks for one recording: what is packed already, and what only it has."""

    def __init__(self, words: tuple[bytes, ...], packed: Patches) -> None:
        self._own, self._packed = Masks(words), packed

    @property
    def patches(self) -> Patches:
        """The bytes that were overwritten."""
        return self._packed | self._own.patches

    def pieces(self, section: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a section masked."""
        return self._own.pieces(section, pieces)
