"""A group of processes as one file, which can be sent: a tar archive of a few plain files.

Its directory is always `group.rdbgs/`. First comes `group.json`, then the recordings by number, then the blocks that
they share, by name. Other tools can list and unpack it. Ours reads nothing else: an archive that deviates by one byte
of a header is refused, before a file is written, so that no name, size or kind of entry has to be judged.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from replaydbg.classes import NamedTuple
from replaydbg.errors import Corrupt, NotARecording
from replaydbg.log.container import Hiding
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.files import PIECE, DataFile, forget_signature
from replaydbg.log.group import FACTS, LIMIT, Group, GroupProcess, group_json, parse_group, read_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sealed.blocks import PACK_FOLDER
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import block_files

_BLOCK = 512
"""Everything in a tar archive is padded to this size."""
_END = bytes(2 * _BLOCK)
_OCTAL = 8**11
"""Sizes from here on are written in binary."""
_BLOCK_NAME = re.compile(r"[0-9a-f]{32}")


class PackedFile(NamedTuple):
    """A file in the archive."""

    name: str
    offset: int
    size: int

    @property
    def end(self) -> int:
        """The offset of the next file."""
        return self.offset + self.size + -self.size % _BLOCK


def pack_group(directory: Path, target: Path, find_secrets: Callable[[Path], Hiding | None]) -> int:
    """Write the group in `directory` into the file `target`; return its size.

    Recordings that were never sealed are sealed in the copy; `find_secrets` finds what is masked in them. Raises
    Corrupt, and writes nothing then, if one is missing or damaged; OSError.
    """
    group = read_group(directory)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as out:
            facts = group_json(group._replace(is_complete=True))
            add_file(out, FACTS, len(facts), [facts])
            blocks: dict[str, Path] = {}
            for process in group.processes:
                if process.recording is not None:
                    blocks |= _add_recording(out, directory, group, process, partial, find_secrets)
            for name, block in sorted(blocks.items()):
                with DataFile(block, follow=False) as file:
                    add_file(out, f"{DIRECTORY}/{name}", file.size, file.pieces(file.size))
            out.write(_END)
        partial.replace(target)
        forget_signature(target)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return target.stat().st_size


def _add_recording(
    out: BinaryIO,
    directory: Path,
    group: Group,
    process: GroupProcess,
    partial: Path,
    find_secrets: Callable[[Path], Hiding | None],
) -> dict[str, Path]:
    """Add the recording of a process; return the files of the blocks that it needs, by name."""
    name = f"{process.number}.rdbg"
    path = directory / name
    if not os.path.lexists(path) and os.path.lexists(directory / f"{name}-live"):
        path = directory / f"{name}-live"
    with open_recording(path) as recording:
        check_member(recording, group, process.number)
        if recording.is_live:
            sealed = partial.with_name(f"{partial.name}.{name}")
            try:
                write_standalone(recording, sealed, find_secrets(path))
                with DataFile(sealed, follow=False) as file:
                    add_file(out, name, file.size, file.pieces(file.size))
            finally:
                sealed.unlink(missing_ok=True)
            return {}
        _read_all(recording)
        with DataFile(path) as file:
            add_file(out, name, file.size, file.pieces(file.size))
        return block_files(path)


def check_member(recording: Recording, group: Group, number: int) -> None:
    """Raise Corrupt if a recording is not that of process `number` of a group."""
    if (recording.header.group, recording.header.process) != (group.identity, number):
        raise Corrupt(str(recording.path), "it is the recording of another process")


def _read_all(recording: Recording) -> None:
    """Raise Corrupt if anything in a sealed recording is damaged or missing."""
    for name in recording.sections:
        for _ in recording.pieces(name):
            pass
    recording.check_sources()
    if recording.damage:
        raise Corrupt(str(recording.path), recording.damage[0].rstrip("."))


def add_file(out: BinaryIO, name: str, size: int, pieces: Iterable[bytes]) -> None:
    """Add a file to an archive. Raises OSError."""
    out.write(_head(name, size))
    for piece in pieces:
        out.write(piece)
    out.write(bytes(-size % _BLOCK))


def _head(name: str, size: int) -> bytes:
    """Return the header of a file, in which nothing depends on the machine, the user or the time."""
    length = b"%011o\0" % size if size < _OCTAL else b"\x80" + size.to_bytes(11, "big")
    before = (
        f"{PACK_FOLDER}{name}".encode().ljust(100, b"\0") + b"0000600\0" + 2 * b"0000000\0" + length + b"0" * 11 + b"\0"
    )
    after = b"0" + bytes(100) + b"ustar\x0000" + bytes(64) + 2 * b"0000000\0" + bytes(167)
    return before + b"%06o\0 " % (sum(before) + 8 * ord(" ") + sum(after)) + after


def packed_files(file: DataFile) -> tuple[Group, list[PackedFile]]:
    """Return the group in an archive, and its files. Raises NotARecording, or Corrupt if it is not one of ours."""
    path = str(file.path)
    if not file.read(0, len(PACK_FOLDER)) == PACK_FOLDER.encode():
        raise NotARecording(path, "it is not the file of a group that `pack` wrote")
    facts = _next(file, 0, FACTS)
    if facts is None or facts.size > LIMIT:
        raise Corrupt(path, f"it does not begin with the file {FACTS}")
    group = parse_group(file.path, file.read(facts.offset, facts.size))
    found = [facts]
    for process in group.processes:
        if process.recording is not None:
            member = _next(file, found[-1].end, process.recording)
            if member is None:
                raise Corrupt(
                    path, f"the recording of process {process.number} does not follow at byte {found[-1].end}"
                )
            found.append(member)
    found += _blocks(file, found[-1].end)
    if file.size != found[-1].end + len(_END) or file.read(found[-1].end, len(_END)) != _END:
        raise Corrupt(path, f"it does not end at byte {found[-1].end}, where its last file does")
    return group, found


def _blocks(file: DataFile, offset: int) -> Iterator[PackedFile]:
    """Yield the blocks from `offset` on: their names rise, so that none comes twice."""
    last = ""
    while True:
        name = file.read(offset + len(PACK_FOLDER) + len(DIRECTORY) + 1, 32).decode("ascii", "replace")
        if not _BLOCK_NAME.fullmatch(name) or name <= last:
            return
        block = _next(file, offset, f"{DIRECTORY}/{name}")
        if block is None or block.size > 2 * PIECE:
            return
        yield block
        offset, last = block.end, name


def _next(file: DataFile, offset: int, name: str) -> PackedFile | None:
    """Return the file at `offset` if it has that name, a header as we write it, and is there as a whole."""
    head = file.read(offset, _BLOCK)
    if len(head) < _BLOCK:
        return None
    length = head[124:136]
    size = int.from_bytes(length[1:], "big") if length[0] == 0x80 else _octal(length)
    if size < 0 or head != _head(name, size):
        return None
    found = PackedFile(name, offset + _BLOCK, size)
    padding = found.end - found.offset - size
    return found if found.end <= file.size and not file.read(found.offset + size, padding).strip(b"\0") else None


def _octal(text: bytes) -> int:
    digits = text[:11]
    return int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else -1


def unpack_group(source: Path, target: Path) -> Group:
    """Make the directory `target`, which may exist if it is empty, of the group in the file `source`.

    Nothing is left if that fails: if the file is not as `pack_group` writes it, a recording in it cannot be opened, or
    is that of another process or group. Raises NotARecording, Corrupt and others of opening, OSError.
    """
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    with DataFile(source) as file:
        group, files = packed_files(file)
        try:
            partial.mkdir(mode=0o700)
            if any(each.name.startswith(DIRECTORY) for each in files):
                (partial / DIRECTORY).mkdir(mode=0o700)
            for each in files:
                _extract(file, each, partial / each.name)
            for process in group.processes:
                if process.recording is not None:
                    with open_recording(partial / process.recording) as recording:
                        check_member(recording, group, process.number)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return group


def _extract(file: DataFile, packed: PackedFile, path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as out:
        for piece in file.pieces(packed.offset + packed.size, packed.offset):
            # A file that is mostly a hole must not fill the disk.
            if piece.strip(b"\0"):
                out.write(piece)
            else:
                out.seek(len(piece), os.SEEK_CUR)
        out.truncate(packed.size)
