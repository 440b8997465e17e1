"""What a remote store has: list it, and remove recordings and pieces.

A recording goes with its index. Pieces are removed apart, when no index names them and they are a day old: whoever is
sending a recording sends pieces again that are half as old, so none that is needed is removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from replaydbg.config import user_cache_directory
from replaydbg.errors import NoSuchRecording, ReplaydbgError, UsageError
from replaydbg.remote.address import Address, is_name, shown
from replaydbg.remote.push import FRESH
from replaydbg.remote.remote_index import parse_index, row_of
from replaydbg.remote.remote_store import (
    ENDING,
    PIECES,
    RECORDINGS,
    RemoteFile,
    RemoteStore,
    index_path,
)
from replaydbg.store.catalog import CatalogRow, row_of_problem
from replaydbg.store.directory import number_of
from replaydbg.store.own_files import OwnFiles
from replaydbg.store.piece_cache import name_of_piece

_MOST = 1 << 28
"""Bytes of the file with what is known of the recordings of a store."""


def remote_rows(url: str) -> list[CatalogRow]:
    """Return the facts about the recordings of a remote store, in the order of `Store.list`. Raises RemoteFailed.

    An index that was read once is not read again: they never change.
    """
    store = RemoteStore(url)
    found = [each for each in store.list(RECORDINGS) if each.name.endswith(ENDING)]
    found = [each for each in found if is_name(each.name.removesuffix(ENDING))]
    known = _Known(url)
    new = [each for each in found if not known.has(each)]
    for each, data in zip(new, store.read_all(f"{RECORDINGS}/{each.name}" for each in new), strict=True):
        if data is not None:  # otherwise it was removed meanwhile
            known.add(each, _row(url, each, data))
    rows = [row for each in found if (row := known.row(each)) is not None]
    known.keep(found)
    return sorted(rows, key=lambda row: (number_of(row.name), row.name))


def _row(url: str, file: RemoteFile, data: bytes) -> CatalogRow:
    name = file.name.removesuffix(ENDING)
    address = str(Address(url, name))
    try:
        return row_of(name, address, parse_index(address, data))
    except ReplaydbgError as error:
        return row_of_problem(name, address, error, size=0)


class _Known:
    """What is known of the recordings of a remote store, in a file of the user's cache directory.

    A failure here costs only time.
    """

    def __init__(self, url: str) -> None:
        self._files = OwnFiles(user_cache_directory() / "remote-listings")
        self._name = name_of_piece(url.encode())[:32] + ".json"
        self._rows: dict[str, tuple[str, CatalogRow]] = {}
        self._is_new = False
        with suppress(OSError, ValueError, TypeError):
            for name, (version, row) in json.loads(self._files.read(self._name, _MOST) or b"{}").items():
                self._rows[name] = (str(version), CatalogRow(*row))

    def has(self, file: RemoteFile) -> bool:
        """Whether the facts about a recording are known."""
        found = self._rows.get(file.name)
        return found is not None and found[0] == _version(file) and not found[1].problem

    def add(self, file: RemoteFile, row: CatalogRow) -> None:
        """Remember the facts about a recording."""
        self._rows[file.name] = (_version(file), row)
        self._is_new = True

    def row(self, file: RemoteFile) -> CatalogRow | None:
        """Return the facts about a recording; None: it is gone."""
        found = self._rows.get(file.name)
        return found[1] if found is not None and found[0] == _version(file) else None

    def keep(self, files: Sequence[RemoteFile]) -> None:
        """Write what is known of these, and forget the others."""
        names = {each.name for each in files}
        if not self._is_new and names == self._rows.keys():
            return
        kept = {name: (version, row) for name, (version, row) in self._rows.items() if name in names}
        with suppress(OSError):
            self._files.write(self._name, json.dumps(kept).encode())


def _version(file: RemoteFile) -> str:
    return f"{file.version} {file.size}"


def remove_remote(addresses: Iterable[Address]) -> list[Address]:
    """Remove recordings of remote stores; return them.

    Raises NoSuchRecording, or UsageError for one process of a group, before any is removed; RemoteFailed.
    """
    found = []
    for each in dict.fromkeys(addresses):
        if each.process:
            raise UsageError(f"A group is removed as a whole: leave out '/{each.process}'.")
        store = RemoteStore(each.store)
        if store.find(index_path(each.name)) is None:
            raise NoSuchRecording(str(each), shown(each.store))
        found.append((each, store))
    for each, store in found:
        store.remove(index_path(each.name))
    return [each for each, _ in found]


def clear_pieces(url: str) -> tuple[int, int]:
    """Remove the pieces that no recording of a remote store needs; return how many, and their size in bytes.

    Raises RemoteFailed; Corrupt or NewerFormat if an index cannot be read: then it is not known what it needs.
    """
    store = RemoteStore(url)
    pieces = store.list(PIECES)  # before the indexes: what is sent from now on is not among them
    indexes = store.list(RECORDINGS)
    names = [each.name for each in indexes if not each.name.startswith(".")]
    used: set[str] = set()
    for name, data in zip(names, store.read_all(f"{RECORDINGS}/{each}" for each in names), strict=True):
        if data is not None:
            address = f"{shown(url)}/{name.removesuffix(ENDING)}"
            used.update(each.digest for each in parse_index(address, data).pieces)
    count = size = 0
    for each in (*pieces, *(each for each in indexes if each.name.startswith("."))):
        if each.name in used or each.changed is None or each.changed > time.time() - 2 * FRESH:
            continue
        again = store.find(f"{each.folder}/{each.name}")
        if again is not None and again.changed == each.changed:  # nobody has sent it again just now
            store.remove(f"{each.folder}/{each.name}")
            count, size = count + 1, size + each.size
    return count, size
