"""Seal a live directory into one recording file, so that at every moment one of the two is complete."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import Corrupt
from replaydbg.log.allowance import allowance
from replaydbg.log.coding.encode import FORMAT
from replaydbg.log.entries.logfile import LOG_HEADER, TRANSFERS_HEADER, read_log_header, transfers_end
from replaydbg.log.files import BRANCH, PIECE, DataFile, forget_signature
from replaydbg.log.live_directory import remove_live
from replaydbg.log.sealed.blocks import RAW, SHARED, ZSTD, pack_block, pack_head
from replaydbg.log.sealed.origin import LONG, MARK, OriginMarker, own_key
from replaydbg.log.sealed.shared import compressor, expand
from replaydbg.secrets.patches import MASKED, SECRETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from replaydbg.log.sealed.group_blocks import Common, CommonPart
    from replaydbg.secrets.patches import Masking

COMPRESS_CONTENT_UP_TO = 32 << 20
"""Content beyond this size is stored uncompressed: compressing it would delay the program's exit by a second and
more.
"""


class Hiding(NamedTuple):
    """Which secrets are masked in a recording, and who can see them."""

    masks: Masking
    recipients: tuple[str, ...]
    """Public keys of age."""
    mask_snapshot: Callable[[bytes], bytes] | None = None
    """Masks a raw snapshot for good; None: there are none."""


class Beginning(NamedTuple):
    """The first sections of a recording, for reuse by others that begin with the same."""

    data: bytes
    entries: tuple[dict[str, object], ...]
    marker: OriginMarker | None


class Writer:
    """Writes the blocks of a sealed recording to a file that is open for writing, from its beginning."""

    def __init__(
        self,
        file: BinaryIO,
        beginning: Beginning | None = None,
        *,
        key: bytes | None = None,
        size: int = 0,
        hiding: Hiding | None = None,
    ) -> None:
        """`beginning`: sections that are written already; `key` marks the file as its user's own, None for no mark.

        `size`: about how many bytes will be added, uncompressed. `hiding`: which secrets are masked in them.
        """
        self._file = file
        self._hiding = hiding
        self._marker = OriginMarker(key, is_long=size >= LONG) if key is not None else None
        if key is not None and beginning is not None and beginning.marker is not None:
            self._marker = beginning.marker.copy()
        self._compress = compressor()
        self._index = list(beginning.entries) if beginning is not None else []
        file.write(beginning.data if beginning is not None else pack_head(format=FORMAT, ok=False, index_offset=0))

    def section(
        self,
        name: str,
        pieces: Iterable[bytes],
        *,
        is_compressed: bool = True,
        compress: Callable[[bytes], bytes] | None = None,
        common: CommonPart | None = None,
    ) -> None:
        """Add a section; each piece, of at most 1 MiB, becomes a block.

        `compress` is used in place of `compressor`, with the same result; `common` is the part that other recordings
        of the group have, too.
        """
        raw_offset = total = 0
        compress = compress or self._compress
        for raw in self._hiding.masks.pieces(name, pieces) if self._hiding is not None else pieces:
            shared = common.entries(raw_offset, raw) if common is not None else None
            if shared is not None and raw_offset + len(raw) <= allowance(total + shared.size):
                self._block(name, raw_offset, len(raw), shared.stored, SHARED)
                raw_offset += len(raw)
                total += shared.size
                continue
            packed = compress(raw) if is_compressed else raw
            # A reader refuses a section that expands too far: some of it is kept uncompressed.
            is_credible = raw_offset + len(raw) <= allowance(total + len(packed))
            codec = ZSTD if len(packed) < len(raw) and is_credible else RAW
            stored = packed if codec == ZSTD else raw
            self._block(name, raw_offset, len(raw), stored, codec)
            raw_offset += len(raw)
            total += len(stored)

    def packed(self, name: str, length: int, packed: bytes) -> None:
        """Add a section of `length` bytes that are compressed already, as by `compressor`."""
        if 0 < length <= PIECE and len(packed) < length <= allowance(len(packed)):
            self._block(name, 0, length, packed, ZSTD)
            return
        raw = expand(packed, length)
        if raw is None:
            raise OSError(errno.EIO, "a compressed source cannot be decompressed")
        self.section(name, split(raw))

    def shared(self, name: str, blocks: Iterable[tuple[int, bytes]]) -> None:
        """Add a section of shared blocks: the length of each, and the name that a BlockStore returned."""
        raw_offset = 0
        for length, stored in blocks:
            self._block(name, raw_offset, length, stored, SHARED)
            raw_offset += length

    def beginning(self, data: bytes) -> Beginning:
        """Return what has been written so far, which is `data`, for other writers."""
        return Beginning(data, tuple(self._index), self._marker.copy() if self._marker is not None else None)

    def _block(self, name: str, raw_offset: int, length: int, stored: bytes, codec: int) -> None:
        entry = {"section": name, "raw_offset": raw_offset, "raw_length": length, "offset": self._file.tell()}
        pack = _packed if codec == SHARED else pack_block
        head = pack(name, raw_offset, length, stored, codec)
        self._file.write(head)
        self._file.write(stored)
        if self._marker is not None:
            self._marker.add(head)
            self._marker.add(stored)
        self._index.append(entry)

    def finish(self, *, syncs: bool = True) -> None:
        """Write the index, flush everything to the disk, and only then mark the file as complete.

        Without `syncs` it does not wait for the disk: if the machine stops at this moment, the file is lost.
        """
        if self._hiding is not None and self._hiding.masks.patches:
            self._write_secrets(self._hiding)
        index_offset = self._file.tell()
        self.section("index", split(json.dumps(self._index).encode()))
        if self._marker is not None:
            mark = self._marker.mark()
            self._block(MARK, 0, len(mark), mark, RAW)
        if syncs:
            self._sync()
        self._file.seek(0)
        kind = {} if self._marker is None else {"is_marked": True, "is_mark_long": self._marker.is_long}
        self._file.write(pack_head(format=FORMAT, ok=True, index_offset=index_offset, **kind))
        if syncs:
            self._sync()

    def masked(self, name: str, data: bytes) -> bytes:
        """Return a section with its secrets masked, which is added in parts afterwards."""
        return data if self._hiding is None else b"".join(self._hiding.masks.pieces(name, [data]))

    def is_masked(self, name: str) -> bool:
        """Whether something has been masked in a section."""
        return self._hiding is not None and name in self._hiding.masks.patches

    def _write_secrets(self, hiding: Hiding) -> None:
        # Imported here: most recordings have none.
        from replaydbg.log.sealed.vault import masked_section, secrets_section

        patches, self._hiding = hiding.masks.patches, None
        self.section(MASKED, split(masked_section(patches, hiding.recipients)))
        if not hiding.recipients:
            return  # no key can be used: masked for good
        self.section(SECRETS, split(secrets_section(patches, hiding.recipients)), is_compressed=False)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


_packed = lru_cache(512)(pack_block)
"""The same for blocks in common with others: thousands of recordings of a session share most of their blocks."""


def split(data: bytes) -> Iterable[bytes]:
    """Yield `data` in pieces that a block can hold."""
    return (data[start : start + PIECE] for start in range(0, len(data), PIECE))


def seal(
    live: Path,
    target: Path,
    end: Mapping[str, object],
    sources: Iterable[tuple[str, int, bytes]] = (),
    *,
    compress_world: Callable[[bytes], bytes] | None = None,
    common: Common | None = None,
    hiding: Hiding | None = None,
) -> None:
    """Turn the live directory `live` into the sealed recording `target`, then remove it.

    `sources` are sources that are not in the directory: name, length and compressed content. `end` becomes `end.json`;
    it is read after them, so that the iterable may add their names to it. `compress_world` compresses the blocks of the
    import world, None for the usual way. With `common`, what other recordings of the group have, too, is stored beside
    them. With `hiding`, secrets are masked, except in `sources`. If anything fails the directory stays unchanged, and
    still opens. Raises Corrupt if the directory has no header, OSError if the target cannot be written.
    """
    header = live / "header.json"
    if not header.is_file():
        raise Corrupt(str(live), "it has no header")
    # In the target's directory, because a rename is atomic only within a file system.
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb", opener=_private) as file:
            size = sum(_end(live / name, is_log=name != "content") for name in ("world", "log", "content"))
            writer = Writer(file, key=own_key(), size=size, hiding=hiding)
            _write(writer, live, end, sources, compress_world, common)
        partial.replace(target)
        forget_signature(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    synchronise(target.parent)
    remove_live(live)


def live_pieces(live: Path, name: str, start: int = 0) -> Iterator[bytes]:
    """Yield a section of a live directory from `start`, without what the parent of a forked child wrote before."""
    path = live / ("header.json" if name == "header" else name)
    end = _end(path, is_log=name in ("world", "log"))
    if end:
        with DataFile(path, follow=False) as file:
            yield from file.pieces(end, start)


def _end(path: Path, *, is_log: bool) -> int:
    """Return how many bytes of a live directory's file belong to the recording; 0 if there is none."""
    if not path.is_file():
        return 0
    with DataFile(path, follow=False) as data:
        if not is_log:
            return data.size
        header = read_log_header(data.read(0, LOG_HEADER))
        # A log without a valid header belongs to a program that was killed in its first instructions.
        return min(header.committed, data.size) if header is not None else 0


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read: a recording contains the environment, passwords included."""
    return os.open(path, flags, 0o600)


def _write(
    writer: Writer,
    live: Path,
    end: Mapping[str, object],
    sources: Iterable[tuple[str, int, bytes]],
    compress_world: Callable[[bytes], bytes] | None,
    common: Common | None,
) -> None:
    if (live / BRANCH).exists():
        _copy_branch(writer, live, compress_world, common)
    else:
        _copy_logs(writer, live, compress_world, common)
    _copy_transfers(writer, live)
    for name, length, packed in sources:
        # A masked source has not the hash by which a shared one is named.
        if common is None or writer.is_masked(f"source/{name}") or not common.has_stored(name, length, packed):
            writer.packed(f"source/{name}", length, packed)
    for name in names_in(live / "source"):
        _copy(writer, live, f"source/{name}", f"source/{name}")
    for name in names_in(live / "heap"):
        if name[0] in "0123456789":
            _copy(writer, live, f"heap/{name}", f"heap/{name}", compress_up_to=0)
    write_json(writer, "end", json.dumps(end).encode(), common, COMMON_IN_END)
    if common is not None:
        common.blocks.sync()
    writer.finish()


def write_json(writer: Writer, name: str, data: bytes, common: Common | None, keys: Iterable[str]) -> None:
    """Write a section of JSON; other recordings of the group or the store have the same values of `keys`."""
    if common is None:
        writer.section(name, split(data))
        return
    data = writer.masked(name, data)
    stored = common.json(data, keys)
    if stored is None:
        writer.section(name, split(data))
    else:
        writer.shared(name, [(len(data), stored)])


def names_in(directory: Path) -> list[str]:
    """Return the names of the files in a directory of a live directory, sorted; none if it does not exist."""
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - most recordings have no such directory
    except FileNotFoundError:
        return []


COMMON_IN_HEADER = ("env", "gates")
"""Fields of the header that most recordings of a program have in common."""
COMMON_IN_END = ("packages", "sources")
"""The same of the end."""


def _copy_logs(
    writer: Writer, live: Path, compress_world: Callable[[bytes], bytes] | None, common: Common | None
) -> None:
    is_large = _end(live / "content", is_log=False) > COMPRESS_CONTENT_UP_TO
    parts = common.parts({}, has_large_content=is_large, compress_world=compress_world) if common is not None else {}
    with DataFile(live / "header.json", follow=False) as file:
        write_json(writer, "header", file.read(0, file.size), common, COMMON_IN_HEADER)
    _copy(writer, live, "world", "world", is_log=True, compress=compress_world, common=parts.get("world"))
    _copy(writer, live, "log", "log", is_log=True, common=parts.get("log"))
    _copy(writer, live, "content", "content", compress_up_to=COMPRESS_CONTENT_UP_TO, common=parts.get("content"))


def _copy_branch(
    writer: Writer, live: Path, compress_world: Callable[[bytes], bytes] | None, common: Common | None
) -> None:
    """Write the sections of a forked child with what its parent wrote before: nothing outside the group is needed.

    Raises Corrupt if a part of that is missing.
    """
    # Imported here: only children of recorded programs need it.
    from replaydbg.log.branch import BranchSections, open_live, whole_pieces

    sections = open_live(live)
    try:
        before = sections.before if isinstance(sections, BranchSections) else {}
        is_large = sections.size("content") > COMPRESS_CONTENT_UP_TO
        parts = {}
        if common is not None:
            parts = common.parts(before, has_large_content=is_large, compress_world=compress_world)
        write_json(writer, "header", b"".join(sections.pieces("header")), common, COMMON_IN_HEADER)
        for name in ("world", "log", "content"):
            end = sections.size(name)
            if name in ("world", "log"):
                header = read_log_header(next(sections.pieces(name), b"")[:LOG_HEADER])
                end = min(header.committed, end) if header is not None else 0
            writer.section(
                name,
                whole_pieces(sections.pieces(name), end),
                is_compressed=name != "content" or not is_large,
                compress=compress_world if name == "world" else None,
                common=parts.get(name),
            )
            if not sections.is_whole(name):
                raise Corrupt(str(live), "a part of its parent's recording is missing")
    finally:
        sections.close()


def _copy_transfers(writer: Writer, live: Path) -> None:
    """Write what a process of a group sent and received; of a forked child only what it did itself."""
    path = live / "transfers"
    if not path.is_file():
        return
    with DataFile(path, follow=False) as data:
        end = min(transfers_end(data.read(0, TRANSFERS_HEADER)), data.size)
        writer.section("transfers", data.pieces(end))


def _copy(
    writer: Writer,
    live: Path,
    section: str,
    name: str,
    *,
    is_log: bool = False,
    compress_up_to: int | None = None,
    compress: Callable[[bytes], bytes] | None = None,
    common: CommonPart | None = None,
) -> None:
    path = live / name
    if not path.is_file():
        return
    end = _end(path, is_log=is_log)
    with DataFile(path, follow=False) as data:
        is_compressed = compress_up_to is None or end <= compress_up_to
        writer.section(section, data.pieces(end), is_compressed=is_compressed, compress=compress, common=common)


def synchronise(path: Path) -> None:
    """Wait until the disk has a file, or the names in a directory. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
