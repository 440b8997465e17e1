"""Cut the files of a recording into the pieces of a remote store.

A piece ends where a section of a recording does, so that what two recordings have in common is a piece of both, and is
stored once; blocks within a section are put together up to 1 MiB, because a remote store takes as long for a small file
as for a larger one. Shared blocks are such pieces already. Small ones are put together: each piece ends before a block
whose name begins with a certain digit, so one more or one less changes one piece only (as content-defined chunking
does; A. Muthitacharoen, B. Chen, D. Mazieres, A low-bandwidth network file system, 2001).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.log.files import PIECE, SIGNATURE, DataFile, signature_path
from replaydbg.log.group import FACTS, read_group
from replaydbg.log.sealed.blocks import FILE_HEADER, read_block
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import block_files
from replaydbg.remote.remote_index import ONE, Piece, RecordedFile
from replaydbg.store.piece_cache import LONGEST, name_of_piece

_SMALL = 1 << 16
"""Bytes. Sections and blocks that are smaller are put together."""
_BEGINS = "01"
"""First digits of the names of blocks with which a new piece begins: one of eight."""


class LocalFile(NamedTuple):
    """A file of a recording on this machine."""

    path: Path
    file: RecordedFile


class CutPiece(NamedTuple):
    """A piece, and where its bytes are."""

    piece: Piece
    parts: tuple[tuple[Path, int, int], ...]
    """Path, offset and size of each part."""

    def read(self) -> bytes:
        """Return its bytes. Raises NotARecording if a file cannot be read."""
        return b"".join(map(_read, self.parts))


def files_of(recording: Path) -> list[LocalFile]:
    """Return the files of a sealed recording, or of a group whose recordings are sealed. Raises ReplaydbgError."""
    if recording.is_dir():
        members = [each.recording for each in read_group(recording).processes if each.recording is not None]
        files = [_local(recording / FACTS, FACTS)]
        files += [_local(recording / each, each) for each in members]
        paths = [recording / each for each in members]
    else:
        files, paths = [_local(recording, ONE)], [recording]
    files += [
        _local(signature, f"{each.file.path}{SIGNATURE}")
        for each in files
        if os.path.lexists(signature := signature_path(each.path))
    ]
    blocks: dict[str, Path] = {}
    for path in paths:
        blocks |= block_files(path)
    found = [_local(path, f"{DIRECTORY}/{name}") for name, path in sorted(blocks.items())]
    return [*files, *(each for each in found if each.file.size >= _SMALL), *filter(_is_small, found)]


def cut(files: list[LocalFile]) -> Iterator[CutPiece]:
    """Yield the pieces of which the files consist, in their order."""
    small: list[tuple[Path, int, int]] = []
    for each in files:
        if not each.file.size:
            continue
        if each.file.path.startswith(DIRECTORY) and _is_small(each):
            if small and (each.path.name[0] in _BEGINS or sum(part[2] for part in small) >= PIECE):
                yield _piece(small)
                small = []
            small.append((each.path, 0, each.file.size))
            continue
        if small:
            yield _piece(small)
            small = []
        for start, end in _spans(each.path, each.file.size):
            yield _piece([(each.path, start, end - start)])
    if small:
        yield _piece(small)


def _is_small(each: LocalFile) -> bool:
    return each.file.size < _SMALL


def _local(path: Path, name: str) -> LocalFile:
    return LocalFile(path, RecordedFile(name, path.stat().st_size))


def _spans(path: Path, size: int) -> Iterator[tuple[int, int]]:
    """Yield where each piece of a file begins and ends."""
    start = 0
    for end, is_border in _ends(path, size):
        if is_border or end - start >= PIECE:
            yield from _no_longer(start, end)
            start = end
    yield from _no_longer(start, size)


def _no_longer(start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        yield start, min(end, start + LONGEST)
        start += LONGEST


def _ends(path: Path, size: int) -> Iterator[tuple[int, bool]]:
    """Yield where blocks of a recording end, and whether a section begins or ends there that is worth a piece."""
    with DataFile(path) as file:
        sections: list[list[int]] = []
        section, at = "", FILE_HEADER
        while at < size and (block := read_block(file, at)) is not None:
            if block.section != section:
                sections.append([at])
                section = block.section
            sections[-1].append(block.end)
            at = block.end
    before_is_large = False
    for start, *ends in sections:
        is_large = ends[-1] - start >= _SMALL
        yield start, is_large or before_is_large
        yield from ((end, False) for end in ends[:-1])
        before_is_large = is_large


def _piece(parts: list[tuple[Path, int, int]]) -> CutPiece:
    data = b"".join(map(_read, parts))
    return CutPiece(Piece(name_of_piece(data), len(data)), tuple(parts))


def _read(part: tuple[Path, int, int]) -> bytes:
    path, offset, size = part
    with DataFile(path) as file:
        return file.read(offset, size)
