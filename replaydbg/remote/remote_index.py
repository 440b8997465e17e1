"""The index of a recording in a remote store: the files that it consists of, and the pieces that these consist of.

The files follow one another, and that sequence of bytes is cut into pieces, each named by its hash. So whoever has the
index can tell whether what it gets is right, and needs only those pieces of which it reads something.

An index may come from anybody: it names files only of the forms that a recording has, and each size is what its parts
add up to.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from replaydbg.classes import NamedTuple
from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.log.allowance import load_json
from replaydbg.log.files import SIGNATURE
from replaydbg.log.group import FACTS
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.store.catalog import CatalogRow, parsed_command
from replaydbg.store.piece_cache import LONGEST, name_of_piece
from replaydbg.store.tags import is_key

FORMAT = 1
MOST = 64 << 20
"""Bytes of an index: those of a recording of a terabyte."""
ONE = "recording.rdbg"
"""The file of a recording of one process."""

_HASH = re.compile(r"[0-9a-f]{64}")
_MEMBER = re.compile(r"[1-9][0-9]{0,6}\.rdbg")
_BLOCK = re.compile(rf"{DIRECTORY}/[0-9a-f]{{32}}")
_FACTS: dict[str, tuple[type, ...]] = {
    "created": (str,),
    "command": (str,),
    "commit": (str,),
    "status": (int, type(None)),
    "exception": (str,),
    "events": (int,),
    "seconds": (float, int, type(None)),
    "python": (str,),
    "processes": (int,),
    "parent": (str,),
    "cwd": (str,),
    "run": (str,),
}
_COUNTS = ("events", "processes")
_MOST_SECONDS = 1e10
"""Three hundred years."""


class Piece(NamedTuple):
    """A part of a recording."""

    digest: str
    """Its hash: blake2b of 32 bytes, in hexadecimal."""
    size: int


class RecordedFile(NamedTuple):
    """A file of a recording."""

    path: str
    """Relative to the recording's directory."""
    size: int


class RemoteIndex(NamedTuple):
    """An index."""

    facts: dict[str, object]
    """What a listing shows."""
    files: tuple[RecordedFile, ...]
    """In the order of their bytes."""
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """The size of the recording in bytes."""
        return sum(each.size for each in self.pieces)

    @property
    def is_group(self) -> bool:
        """Whether it is a group of processes."""
        return self.files[0].path == FACTS

    @property
    def is_signed(self) -> bool:
        """Whether there is a signature of a file of it."""
        return any(each.path.endswith(SIGNATURE) for each in self.files)

    def encode(self) -> bytes:
        """Return it as it is stored, with its hash at the end."""
        text = json.dumps(
            {
                "format": FORMAT,
                "facts": self.facts,
                "files": [list(each) for each in self.files],
                "pieces": [list(each) for each in self.pieces],
            }
        ).encode()
        return text + b"\n" + name_of_piece(text).encode() + b"\n"


def parse_index(name: str, data: bytes) -> RemoteIndex:
    """Return an index of a recording called `name`. Raises Corrupt, or NewerFormat."""
    text, _, digest = data.rstrip(b"\n").rpartition(b"\n")
    if len(data) > MOST or name_of_piece(text).encode() != digest:
        raise Corrupt(name, "its index is cut off or was changed")
    try:
        value = load_json(text)
    except ValueError as error:
        raise Corrupt(name, "its index is not JSON") from error
    version = value.get("format") if isinstance(value, dict) else None
    if type(version) is int and version > FORMAT:
        raise NewerFormat(name, version, FORMAT)
    if type(version) is not int or version != FORMAT:
        raise Corrupt(name, "its index has not the form of one")
    try:
        facts, files = dict(value["facts"]), [RecordedFile(*each) for each in value["files"]]
        pieces = [Piece(*each) for each in value["pieces"]]
    except (TypeError, KeyError, ValueError) as error:
        raise Corrupt(name, "its index has not the form of one") from error
    problem = _problem(facts, files, pieces)
    if problem:
        raise Corrupt(name, f"its index {problem}")
    return RemoteIndex(facts, tuple(files), tuple(pieces))


def _problem(facts: dict[str, object], files: Sequence[Any], pieces: Sequence[Any]) -> str:
    """Return what is wrong with an index, whose fields can have any values; empty: nothing is."""
    if not all(type(facts.get(key)) in kinds for key, kinds in _FACTS.items()) or not _are_possible(facts):
        return "has not the facts of a recording"
    if not all(isinstance(each.path, str) and _is_size(each.size) for each in files):
        return "has a file without a name or a size"
    for each in pieces:
        if not (isinstance(each.digest, str) and _HASH.fullmatch(each.digest) and _is_size(each.size)):
            return "has a piece without a hash or a size"
        if not 0 < each.size <= LONGEST:
            return f"has a piece of {each.size:,} bytes"
    paths = [each.path for each in files]
    if len(set(paths)) != len(paths) or not _is_recording(paths):
        return "names files that no recording has"
    if sum(each.size for each in files) != sum(each.size for each in pieces):
        return "has pieces that do not add up to its files"
    return ""


def _are_possible(facts: dict[str, Any]) -> bool:
    """Whether the numbers among the facts are some that a run can have, and its command and key what they should be."""
    if parsed_command(facts["command"]) is None or (facts["run"] and not is_key(facts["run"])):
        return False
    seconds, status = facts["seconds"] or 0, facts["status"] or 0
    return 0 <= seconds < _MOST_SECONDS and abs(status) < 1 << 31 and all(0 <= facts[key] < 1 << 63 for key in _COUNTS)


def _is_size(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_recording(paths: Sequence[str]) -> bool:
    """Whether a recording, or a group of processes, has these files in this order."""
    signed = {each.removesuffix(SIGNATURE) for each in paths if each.endswith(SIGNATURE)}
    others = [each for each in paths[1:] if not _BLOCK.fullmatch(each) and not each.endswith(SIGNATURE)]
    if not signed <= {*others, *paths[:1]}:
        return False
    if paths[:1] == [ONE]:
        return not others
    return paths[:1] == [FACTS] and bool(others) and all(map(_MEMBER.fullmatch, others))


class PiecePlaces:
    """Where the bytes of files are in the pieces."""

    def __init__(self, index: RemoteIndex) -> None:
        self._starts = list(accumulate((each.size for each in index.pieces), initial=0))
        self._files = index.files
        self._file_starts = list(accumulate((each.size for each in index.files), initial=0))
        self._by_path = {each.path: number for number, each in enumerate(index.files)}

    def pieces(self, path: str, offset: int, size: int) -> range:
        """Return the numbers of the pieces with some of these bytes of a file."""
        start = self._file_starts[self._by_path[path]] + offset
        return range(bisect_right(self._starts, start) - 1, bisect_left(self._starts, start + size))

    def files(self, number: int) -> Iterator[tuple[RecordedFile, int]]:
        """Yield the files with bytes of a piece, and where in the file it begins: negative, if before the file does."""
        start, end = self._starts[number], self._starts[number + 1]
        first = bisect_right(self._file_starts, start) - 1
        for file in range(first, bisect_left(self._file_starts, end)):
            yield self._files[file], start - self._file_starts[file]


def facts_of(row: CatalogRow) -> dict[str, object]:
    """Return what a listing of a remote store shows of a recording."""
    return {key: getattr(row, key) for key in _FACTS}


def row_of(name: str, address: str, index: RemoteIndex) -> CatalogRow:
    """Return the facts about a recording in a remote store."""
    facts: dict[str, Any] = {key: index.facts[key] for key in _FACTS}
    return CatalogRow(name=name, path=address, size=index.size, live=0, problem="", **facts)
