"""Send a recording to a remote store.

The pieces that are not there yet are sent first, and the index last: until then nobody sees the recording. What was
interrupted goes on when it is started again, because the pieces that were sent are there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import Corrupt, RemoteFailed
from replaydbg.log.files import DataFile
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.remote.address import check_name, is_name, shown
from replaydbg.remote.cutting import CutPiece, LocalFile, cut, files_of
from replaydbg.remote.remote_index import MOST, RemoteIndex, facts_of, parse_index
from replaydbg.remote.remote_store import AT_ONCE, RemoteStore, index_path, piece_path
from replaydbg.store.catalog import CatalogRow, readable_row
from replaydbg.store.directory import GROUP, SEALED, StoredRecording, member_path
from replaydbg.store.piece_cache import name_of_piece

FRESH = 12 * 3600.0
"""Seconds. An older piece is sent again, so that nobody who removes unused pieces takes it for one meanwhile."""

_NOT_IN_TIMES = re.compile(r"[^0-9TZ-]")


class NameTaken(RemoteFailed):
    """There is another recording of that name."""


class PushChoices(NamedTuple):
    """How a recording is sent."""

    is_checked: bool = False
    """Whether pieces that are there are read, and those that were damaged are sent again."""
    is_copy: bool = False
    """Whether it is a copy made of a recording that was never sealed: each copy differs, and one of a run is enough."""


class Pushed(NamedTuple):
    """What was sent."""

    pieces: int
    """How many pieces the recording has."""
    sent: int
    """How many of them were sent."""
    size: int
    """The size of the recording in bytes."""
    sent_size: int
    """How many bytes of it were sent."""
    is_new: bool
    """Whether it was not there before."""


def push(
    recording: Path,
    store: RemoteStore,
    name: str,
    *,
    how: PushChoices | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Pushed:
    """Send a sealed recording, or a group whose recordings are sealed, under a name.

    `progress` is called with the bytes that are there, and those of the recording. Raises RemoteFailed, also if there
    is another recording of that name; NotARecording, Corrupt or BlocksMissing if it cannot be read.
    """
    with ExitStack() as stack:
        files, row = files_of(recording), _row(recording)
        for each in files:
            if not each.file.path.startswith(DIRECTORY):
                stack.enter_context(DataFile(each.path)).hold()  # `gc` leaves what is being sent
        return _push(files, row, store, name, how or PushChoices(), progress)


def _row(recording: Path) -> CatalogRow:
    """Return the facts about a recording, read from it: what the catalog of a store has need not be right."""
    group = recording if recording.is_dir() else None
    first = recording if group is None else member_path(group, 1)
    return readable_row(StoredRecording(recording.name, first, is_live=False, group=group))


def _push(
    files: list[LocalFile],
    row: CatalogRow,
    store: RemoteStore,
    name: str,
    how: PushChoices,
    progress: Callable[[int, int], None],
) -> Pushed:
    cuts = list(cut(files))
    index = RemoteIndex(facts_of(row), tuple(each.file for each in files), tuple(each.piece for each in cuts))
    data = index.encode()
    if len(data) > MOST:
        raise RemoteFailed(shown(store.url), f"an index of {len(data):,} bytes is too long")
    parse_index(f"{shown(store.url)}/{name}", data)  # what readers would refuse is not sent
    is_new = not _is_there(store, name, index, how)
    unique = {each.piece.digest: each for each in cuts}
    sent, done = [], 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for each, is_sent in pool.map(lambda each: (each, _send(store, each, how)), unique.values()):
                done += each.piece.size
                sent.append(each.piece.size if is_sent else 0)
                progress(done, index.size)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if is_new:
        is_new = store.create(index_path(name), data)
        # Read as others read it: the recording may be removed here next.
        if not _is_there(store, name, index, how):
            raise RemoteFailed(shown(store.url), f"{name} cannot be read back after it was sent")
    return Pushed(len(unique), sum(map(bool, sent)), index.size, sum(sent), is_new)


def _is_there(store: RemoteStore, name: str, index: RemoteIndex, how: PushChoices) -> bool:
    """Whether the recording is in the store. Raises RemoteFailed if there is another one of its name."""
    found = store.read(index_path(name))
    if found is None:
        return False
    known = parse_index(f"{shown(store.url)}/{name}", found)
    if how.is_copy and known.facts["run"] == index.facts["run"]:
        return True
    if (known.files, known.pieces) != (index.files, index.pieces):
        raise NameTaken(shown(store.url), f"it has another recording called {name}; give this one a name with --as")
    return True


def _send(store: RemoteStore, each: CutPiece, how: PushChoices) -> bool:
    """Send a piece unless it is there; return whether it was sent."""
    path = piece_path(each.piece.digest)
    found = store.find(path)
    if found is not None and found.size == each.piece.size and _is_fresh(found.changed):
        there = store.read(path) if how.is_checked else None
        if not how.is_checked or (there is not None and name_of_piece(there) == each.piece.digest):
            return False
    data = each.read()
    if name_of_piece(data) != each.piece.digest:
        raise Corrupt(str(each.parts[0][0]), "it was changed while it was sent")
    store.write(path, data)
    return True


def _is_fresh(changed: float | None) -> bool:
    return changed is None or changed > time.time() - FRESH


def push_under_free_name(recording: Path, store: RemoteStore) -> str:
    """Send a recording as `push`, under its name, or with its time behind that if it is another one's; return it."""
    own = recording.name.removesuffix(GROUP).removesuffix(SEALED)
    name = own if is_name(own) else "recording"
    try:
        push(recording, store, name)
    except NameTaken:
        # The time is what the recording says, and a name becomes a path.
        name = check_name(f"{name[:79]}-{_NOT_IN_TIMES.sub('', _row(recording).created)[:20]}")
        push(recording, store, name)
    return name
