"""The ring of `replaydbg always`: of the runs that passed, the newest recordings; those of others are not touched.

A recording is in it by a tag, which its user can remove, and `pinned` keeps it. So `ls`, `tag`, `rm` and `gc` treat it
as any other one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from replaydbg.errors import UsageError
from replaydbg.log.reader import open_recording
from replaydbg.store.catalog import Catalog, CatalogRow
from replaydbg.store.collecting import collect, only_collector
from replaydbg.store.directory import GROUP, SEALED, Store
from replaydbg.store.removing import remove_recording
from replaydbg.store.retention import KeepRule, decide
from replaydbg.store.room import Room
from replaydbg.store.tags import PINNED, Tags, TagsUnreadable, change_tags, key_of

IN_RING, FAILING = "always", "failing"
"""The tags of recordings of runs that passed, and that failed."""


def enter(
    store: Store, show: Callable[[CatalogRow], str], path: Path, *, runs: int = 0, megabytes: int = 0
) -> list[str]:
    """Let a recording into the ring, and remove those that are too much for it; return their names.

    `show`: see `Catalog`. The newest `runs` stay, or with 0 the newest that take at most `megabytes` together. Raises
    TagsUnreadable, or OSError: then the recording stays.
    """
    catalog = Catalog(store, show)
    rows = catalog.rows()
    row = _row_of(rows, path)
    if row is None:
        return []
    try:
        # A request may have failed meanwhile in a process that goes on.
        change_tags(store, row.name, row.run, lambda tags: tags if FAILING in tags else tags | {IN_RING})
    except UsageError:  # too many others end at once: it would stay for good
        remove_recording(store, _whole(path), row.run)
        return [row.name]
    with suppress(UsageError), only_collector(store):  # if somebody else removes recordings, the next run does it
        return _removed(store, rows, KeepRule("newest", runs) if runs else KeepRule("megabytes", megabytes))
    return []


def keep_failing(store: Store, show: Callable[[CatalogRow], str], path: Path) -> None:
    """Tag the recording of a run that failed, by which `ls` finds it. Raises TagsUnreadable, or OSError."""
    row = _row_of(Catalog(store, show).rows(), path)
    if row is not None:
        with suppress(UsageError):  # it is kept without the tag, too
            change_tags(store, row.name, row.run, lambda tags: tags | {FAILING})


def keep_failing_group(directory: Path) -> None:
    """Tag a group in which a request failed after its first process had ended. Raises ReplaydbgError, or OSError."""
    with open_recording(directory / f"1{SEALED}") as first:
        run = key_of(first.header)
    name = directory.name.removesuffix(GROUP)
    change_tags(Store(directory.parent), name, run, lambda tags: (tags - {IN_RING}) | {FAILING})


def tagged(store: Store, show: Callable[[CatalogRow], str], tag: str) -> list[CatalogRow]:
    """Return the recordings with a tag."""
    tags = Tags(store)
    return [row for row in Catalog(store, show).rows() if tag in tags.of(row.name, row.run)]


def _removed(store: Store, rows: list[CatalogRow], limit: KeepRule) -> list[str]:
    tags = Tags(store)
    if tags.unreadable:
        raise TagsUnreadable(tags.unreadable, "no recording was removed")
    ours = [row for row in rows if IN_RING in tags.of(row.name, row.run)]
    decisions = decide(
        ours,
        lambda row: tags.of(row.name, row.run),
        [KeepRule(PINNED), limit],
        datetime.now(UTC),
        room=lambda: Room(store).take,
    )

    def is_out(row: CatalogRow) -> bool:
        now = Tags(store).of(row.name, row.run)
        return PINNED in now or IN_RING not in now

    return [each.name for each in collect(store, decisions, is_out) if not each.why_not]


def _row_of(rows: list[CatalogRow], path: Path) -> CatalogRow | None:
    name = _whole(path).name.rpartition(".")[0]
    return next((row for row in rows if row.name == name and row.run), None)


def _whole(path: Path) -> Path:
    """Return the directory of the group of which this is the first process, or the recording itself."""
    return path.parent if path.parent.name.endswith(GROUP) else path
