"""The header of a snapshot's file: when it was taken, its types and roots, and a description of each column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from replaydbg.classes import asdict, astuple, dataclass
from replaydbg.heap.snapshot import Root, Snapshot, Taken
from replaydbg.heap.storage.stored_columns import Codec, StoredColumn
from replaydbg.log.allowance import load_json

_CODECS: Mapping[object, Codec] = {"zstd": "zstd", "raw": "raw"}


@dataclass(frozen=True, slots=True)
class Link:
    """Names the snapshot against which another one is delta-coded."""

    number: int
    """Its number in the run."""
    mark: int
    """The checksum of its file's header, which contains those of its columns."""


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """A header that was read. Each part is validated when it is used, and raises ValueError with the problem."""

    fields: Mapping[str, object]
    """The JSON object; nothing in it is validated yet."""

    @property
    def taken(self) -> Taken:
        """When and why the snapshot was taken."""
        fields = self.fields.get("taken")
        expected = asdict(Taken())
        if not isinstance(fields, dict) or fields.keys() != expected.keys():
            raise ValueError("the snapshot lacks the time at which it was taken")
        for name, default in expected.items():
            if not isinstance(fields[name], str) if isinstance(default, str) else not _is_count(fields[name]):
                raise ValueError("the snapshot lacks the time at which it was taken")
        return Taken(**fields)

    @property
    def base(self) -> Link | None:
        """The snapshot against which it is delta-coded; None: it is self-contained."""
        base = self.fields.get("base")
        if base is None:
            return None
        if not isinstance(base, dict) or base.keys() != {"number", "mark"} or not all(map(_is_count, base.values())):
            raise ValueError("the snapshot does not name the one it is encoded against")
        return Link(**base)

    @property
    def types(self) -> tuple[str, ...]:
        """The names of types."""
        return self._texts("types")

    @property
    def cut(self) -> tuple[str, ...]:
        """Descriptions of what the limits left out."""
        return self._texts("cut")

    @property
    def roots(self) -> tuple[Root, ...]:
        """The objects at which the graph begins."""
        found = []
        for each in self._list("roots"):
            if not isinstance(each, list) or len(each) != 2 or not isinstance(each[0], str) or not _is_count(each[1]):
                raise ValueError("the snapshot's roots are not described")
            label, node = each
            # Older versions wrote `lane` in place of `thread`.
            found.append(Root("thread " + label.removeprefix("lane ") if label.startswith("lane ") else label, node))
        return tuple(found)

    def columns(self, names: Iterable[str]) -> tuple[StoredColumn, ...]:
        """Return the descriptions of the columns, which must have these names, in this order."""
        found = []
        for each in self._list("columns"):
            if not isinstance(each, list) or len(each) != 5:
                raise ValueError("the snapshot's columns are not described")
            name, count, codec, length, crc = each
            known = _CODECS.get(codec) if isinstance(codec, str) else None
            if known is None or not all(map(_is_count, (count, length, crc))):
                raise ValueError("the snapshot's columns are not described")
            found.append(StoredColumn(name, count, known, length, crc))
        if [each.name for each in found] != list(names):
            raise ValueError("the snapshot has other columns than it should have")
        return tuple(found)

    def _list(self, name: str) -> list[object]:
        found = self.fields.get(name)
        if not isinstance(found, list):
            raise ValueError(f"the snapshot's header has no list of {name}")
        return found

    def _texts(self, name: str) -> tuple[str, ...]:
        found = self._list(name)
        texts = tuple(each for each in found if isinstance(each, str))
        if len(texts) != len(found):
            raise ValueError(f"the snapshot's {name} are not texts")
        return texts


def encode_header(snapshot: Snapshot, columns: Iterable[StoredColumn], base: Link | None) -> bytes:
    """Return the header of a snapshot whose columns are stored as described, delta-coded against `base`."""
    fields: dict[str, object] = {
        "taken": asdict(snapshot.taken),
        "types": snapshot.types,
        "roots": [list(root) for root in snapshot.roots],
        "cut": snapshot.cut,
        "columns": [list(astuple(stored)) for stored in columns],
    }
    if base is not None:
        fields["base"] = asdict(base)
    return json.dumps(fields).encode()


def decode_header(text: bytes) -> SnapshotHeader:
    """Return the header stored as `text`. Raises ValueError."""
    try:
        fields: object = load_json(text)
    except ValueError:
        raise ValueError("the snapshot's header is not valid JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("the snapshot's header is not a JSON object")
    return SnapshotHeader(fields)


def _is_count(number: object) -> TypeGuard[int]:
    return type(number) is int and 0 <= number < 1 << 64
