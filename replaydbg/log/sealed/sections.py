"""Read the sections of a recording; those of a sealed file. A live directory: live_directory.py."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import BlocksMissing, Corrupt, NewerFormat, NotARecording
from replaydbg.log.allowance import load_json
from replaydbg.log.coding.encode import FORMAT
from replaydbg.log.files import PIECE, DataFile
from replaydbg.log.header_and_end import JSON_LIMIT
from replaydbg.log.sealed.blocks import (
    BLOCK_HEADER,
    FILE_HEADER,
    MAGIC,
    RAW,
    SHARED,
    StoredBlock,
    load_block,
    read_block,
    unpack_head,
    why_no_recording,
)
from replaydbg.log.sealed.origin import MARK, MARK_SIZE
from replaydbg.log.sealed.shared import DIRECTORY, find_directories, load_source, names_in, size_of_files
from replaydbg.log.signature import Signed, verified
from replaydbg.secrets.patches import MASKED, SECRETS, Patches, patched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from replaydbg.log.sealed.vault import Masked
else:
    Protocol = object


class InPlace(NamedTuple):
    """The position of a section whose bytes can be used where they are, in a sealed file."""

    fd: int
    """The file, open for reading as long as the recording is."""
    first: int
    """Offset in the file of the first piece of 1 MiB."""
    stride: int
    """Bytes from the beginning of one piece to that of the next."""
    size: int
    """The size of the file."""
    mtime_ns: int
    """When its content was last modified."""


class Sections(Protocol):
    """The named byte strings of a recording, each from its beginning as far as it was found."""

    problems: dict[str, bool]
    """Sentences about damaged or missing data, in the order met, each with whether it is damage."""
    ok: bool
    """Whether it is marked as written to its end."""

    @property
    def signature(self) -> Signed | None:
        """The signature beside it; None: there is none."""
        ...

    @property
    def masked(self) -> Masked | None:
        """Where secrets are masked; None: nowhere."""
        ...

    @property
    def hidden(self) -> Masked | None:
        """The same for a user who has no key for them; None: nowhere, or this one has."""
        ...

    @property
    def secrets(self) -> Patches:
        """The masked bytes, if this user has the key; otherwise none."""
        ...

    def names(self) -> tuple[str, ...]:
        """Return the names of the sections that have bytes."""
        ...

    def size(self, name: str) -> int:
        """Return the number of bytes found of a section; 0 if it does not exist."""
        ...

    def stored(self, name: str) -> int:
        """Return how many bytes on the disk a section takes."""
        ...

    def is_whole(self, name: str) -> bool:
        """Whether nothing is known to be missing at the section's end."""
        ...

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a section's bytes from `start`; at damage, add a problem and stop."""
        ...

    def stored_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the same as it is in the file, with masks in the place of secrets."""
        ...

    def in_place(self, name: str) -> InPlace | None:
        """Return where a section's bytes are in the file; None if they have to be unpacked."""
        ...

    def shared_names(self) -> set[str]:
        """Return the names of the files with its blocks. Raises Corrupt if a block of it is damaged."""
        ...

    def is_shared(self, name: str) -> bool:
        """Whether a section has only shared blocks."""
        ...

    def shared_blocks(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Yield length and stored bytes of each block of a section that has only shared ones. Raises Corrupt."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


class SealedFile:
    """The sections of a sealed recording, or of its remains."""

    def __init__(self, path: Path, *, with_secrets: bool = True, with_signature: bool = True) -> None:
        """Open it; without `with_secrets` what is masked stays so, even if this user has the key.

        A signature beside it is verified first, unless `with_signature` is false.
        """
        self.problems: dict[str, bool] = {}
        self.ok = False
        self.signature: Signed | None = None
        """The signature beside it; None: there is none."""
        self._file = DataFile(path)
        self._file.hold()
        self._blocks: dict[str, list[StoredBlock]] = {}
        self._gaps: set[str] = set()
        self._stored_sizes: dict[str, int] = {}
        self._patches: Patches | None = None if with_secrets else {}
        """The masked bytes, once they were needed."""
        try:
            if with_signature:
                self.signature = verified(path, self._file.fileno())
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        path = str(self._file.path)
        data = self._file.read(0, FILE_HEADER)
        if not data.startswith(MAGIC):
            raise NotARecording(path, why_no_recording(data))
        head = unpack_head(data)
        if not head.is_sound:
            self.problems["Its first 32 bytes are damaged."] = True
            return self._walk()
        if head.format > FORMAT:
            raise NewerFormat(path, head.format, FORMAT)
        if head.format < 1:
            raise Corrupt(path, "it has format 0, which does not exist")
        self.ok = head.ok
        if head.index_offset == 0:
            self.problems["It was not written to its end: it has no index."] = True
            return self._walk()
        offsets = self._index(head.index_offset)
        if head.is_marked and not self._has_mark_at_end():
            self.problems["The mark of its owner, at its end, is missing or damaged."] = True
        if offsets is None:
            self.problems["Its index is missing or damaged."] = True
            return self._walk()
        for name, raw_offset, offset in offsets:
            block = read_block(self._file, offset)
            if block is not None and block.codec == SHARED and not find_directories(self._file.path):
                raise BlocksMissing(path, DIRECTORY)
            if block is None or block.section != name or block.raw_offset != raw_offset:
                self._lost(name, offset)
            else:
                self._add(block)
        return None

    def _has_mark_at_end(self) -> bool:
        offset = self._file.size - BLOCK_HEADER - len(MARK) - MARK_SIZE
        block = read_block(self._file, offset) if offset > FILE_HEADER else None
        return block is not None and block.section == MARK and load_block(self._file, block) is not None

    def _index(self, offset: int) -> list[tuple[str, int, int]] | None:
        """Return section, offset in it and offset in the file of each block; None if the index is unusable."""
        data = b""
        while (block := read_block(self._file, offset)) is not None and block.section == "index":
            piece = load_block(self._file, block)
            if piece is None or block.raw_offset != len(data) or len(data) > JSON_LIMIT:
                return None
            data += piece
            offset = block.end
        found = []
        last = 0
        try:
            for entry in load_json(data):
                name, raw_offset, place = entry["section"], entry["raw_offset"], entry["offset"]
                # Rising offsets: no block is used twice, by which a short file could expand to very much.
                if type(name) is not str or type(raw_offset) is not int or type(place) is not int or place <= last:
                    return None
                found.append((name, raw_offset, place))
                last = place
        except (ValueError, TypeError, KeyError):
            return None
        return found

    def _walk(self) -> None:
        """Find the blocks without an index.

        It never searches for a block's magic further on: recorded content can contain another recording, whose blocks
        must not be taken for ours.
        """
        offset = FILE_HEADER
        last = ""
        while (block := read_block(self._file, offset)) is not None:
            if block.section == MARK:
                offset = block.end
                continue
            if block.section != "index":
                self._add(block)
            last = block.section
            offset = block.end
        if offset == self._file.size and last == "index":
            return
        self.problems[f"Nothing can be read from byte {offset} of the file on."] = True
        # Only the last block of a section is shorter than the maximum. After a full one there may have been more.
        blocks = self._blocks.get(last)
        if not blocks or blocks[-1].raw_length == PIECE:
            self._gaps.add(last)
        if last in ("", "header", "world", "log"):
            self._gaps.add("content")

    def _add(self, block: StoredBlock) -> None:
        blocks = self._blocks.setdefault(block.section, [])
        expected = blocks[-1].raw_offset + blocks[-1].raw_length if blocks else 0
        if block.raw_offset == expected and block.section not in self._gaps:
            blocks.append(block)
        else:
            self._lost(block.section, block.offset)

    def _lost(self, section: str, offset: int) -> None:
        if section not in self._gaps:
            self.problems[f"A block of section {section!r} is missing or damaged, at byte {offset} of the file."] = True
        self._gaps.add(section)

    def names(self) -> tuple[str, ...]:
        """Return the names of the sections that have bytes."""
        return tuple(name for name, blocks in self._blocks.items() if blocks)

    def size(self, name: str) -> int:
        """Return the number of bytes found of a section; 0 if it does not exist."""
        blocks = self._blocks.get(name)
        if not blocks:
            return len(self._shared_source(name))
        return blocks[-1].raw_offset + blocks[-1].raw_length

    def _shared_source(self, name: str) -> bytes:
        """Return a source that is stored beside the recording, under its hash; empty if there is none."""
        folder, _, digest = name.partition("/")
        places = find_directories(self._file.path) if folder == "source" else ()
        return next((found for each in places if (found := load_source(digest, each))), b"")

    def stored(self, name: str) -> int:
        """Return how many bytes of the file a section takes, and of the files with its shared blocks."""
        if name not in self._stored_sizes:
            blocks = self._blocks.get(name, ())
            shared = [
                self._file.read(each.stored_offset, each.stored_length) for each in blocks if each.codec == SHARED
            ]
            files = size_of_files(self._file.path, shared)
            self._stored_sizes[name] = files + sum(each.stored_length for each in blocks)
        return self._stored_sizes[name]

    def is_whole(self, name: str) -> bool:
        """Whether nothing is known to be missing at the section's end."""
        return name not in self._gaps

    @property
    def hidden(self) -> Masked | None:
        """Where secrets are masked for this user, who has no key for them; None: nowhere."""
        masked = self.masked
        return None if masked is None or self.secrets else masked

    @property
    def masked(self) -> Masked | None:
        """Where secrets were masked; None: nowhere."""
        if MASKED not in self._blocks:
            return None
        # Imported here: most recordings have none.
        from replaydbg.log.sealed.vault import MOST, read_masked

        data = b"".join(self.stored_pieces(MASKED)) if self.size(MASKED) <= MOST else b""
        found = read_masked(data)
        if found is None:
            self._lost(MASKED, self._blocks[MASKED][0].offset)
        return found

    @property
    def secrets(self) -> Patches:
        """The masked bytes, if this user has the key; otherwise none."""
        if self._patches is None:
            self._patches = self._read_secrets()
        return self._patches

    def _read_secrets(self) -> Patches:
        masked = self.masked
        if masked is None:
            return {}
        from replaydbg.log.sealed.vault import read_secrets

        is_sound = self.size(SECRETS) <= self.stored(SECRETS)  # it is not compressed
        data = b"".join(self.stored_pieces(SECRETS)) if is_sound else b""
        return read_secrets(data, masked) or {}

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a section's bytes from `start`; at damage, add a problem and stop."""
        patches = self.secrets.get(name) if MASKED in self._blocks and name not in (MASKED, SECRETS) else None
        if patches is None:
            yield from self.stored_pieces(name, start)
        else:
            yield from patched(self.stored_pieces(name, start), patches, start)

    def stored_pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield the same as it is in the file, with the masks."""
        if name not in self._blocks and (source := self._shared_source(name)[start:]):
            yield source
        for block in self._blocks.get(name, ()):
            if block.raw_offset + block.raw_length <= start:
                continue
            piece = load_block(self._file, block)
            if piece is None:
                self._lost(name, block.offset)
                return
            yield piece[max(0, start - block.raw_offset) :]

    def is_shared(self, name: str) -> bool:
        """Whether a section has only shared blocks."""
        return all(block.codec == SHARED for block in self._blocks.get(name, ()))

    def in_place(self, name: str) -> InPlace | None:
        """Return where a section's bytes are in the file; None if they have to be unpacked."""
        blocks = self._blocks.get(name)
        if not blocks or self.secrets.get(name):
            return None
        first, stride = blocks[0].stored_offset, BLOCK_HEADER + len(name) + PIECE
        for number, block in enumerate(blocks):
            if (block.codec, block.raw_offset) != (RAW, number * PIECE) or block.stored_length != block.raw_length:
                return None
            if block.stored_offset != first + number * stride:
                return None
        found = os.fstat(self._file.fileno())
        return InPlace(self._file.fileno(), first, stride, found.st_size, found.st_mtime_ns)

    def shared_blocks(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Yield length and stored bytes of each block of a section that has only shared ones. Raises Corrupt."""
        for block in self._blocks.get(name, ()):
            if block.codec != SHARED:
                raise Corrupt(str(self._file.path), f"a block of its section {name!r} is not shared")
            yield block.raw_length, self._stored(block)

    def shared_names(self) -> set[str]:
        """Return the names of the files with its blocks. Raises Corrupt if a block of it is damaged."""
        shared = (each for blocks in self._blocks.values() for each in blocks if each.codec == SHARED)
        return {name for each in shared for name in names_in(self._stored(each))}

    def _stored(self, block: StoredBlock) -> bytes:
        """Return the stored bytes of a block. Raises Corrupt if they are damaged."""
        stored = self._file.read(block.stored_offset, block.stored_length)
        if zlib.crc32(stored) != block.crc:
            raise Corrupt(str(self._file.path), f"a block of its section {block.section!r} is damaged")
        return stored

    def close(self) -> None:
        """Close the file."""
        self._file.close()
