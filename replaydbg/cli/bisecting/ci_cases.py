"""Which recordings `replaydbg ci` follows: those that are named, or those of stores that its options select."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.read_tags import read_tags
from replaydbg.errors import NoSuchRecording, UsageError
from replaydbg.regressions.code_verdicts import Case
from replaydbg.render.recording_text import listing_text
from replaydbg.store.catalog import Catalog, CatalogRow, command_text, read_row
from replaydbg.store.directory import GROUP, LIVE, SEALED, Store
from replaydbg.store.selection import Selection, parse_time
from replaydbg.store.tags import Tags, check_tag


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select recordings of a store."""
    parser.add_argument("--exception", metavar="TYPE", help="only programs that ended with this uncaught exception")
    parser.add_argument("--command", metavar="TEXT", help="only commands with this text in them")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="only recordings with this tag")
    parser.add_argument(
        "--since", metavar="WHEN", help="only recordings of this time or later: 2026-11-27T10:30, or 3d (ago)"
    )
    parser.add_argument("--until", metavar="WHEN", help="only recordings from before this time")


def find_cases(args: argparse.Namespace) -> tuple[Case, ...]:
    """Return the recordings. Raises UsageError, or NoSuchRecording for a name that there is not."""
    selection = _selection(args)
    cases: dict[Path, Case] = {}
    for word in args.recordings or [None]:
        for case in _of_word(word, selection):
            cases.setdefault(case.path, case)
    if not cases:
        where = "in the store" if not args.recordings else "there"
        raise UsageError(f"No recording {where} failed and matches the options: there is nothing to test.")
    return tuple(cases.values())


def _selection(args: argparse.Namespace) -> Selection:
    given = (args.exception, args.command, args.since, args.until, *args.tag)
    if any(text is not None and not text.strip() for text in given):
        raise UsageError("An option of ci is empty, as if a variable of the shell were not set.")
    now = datetime.now(UTC)
    return Selection(
        has_failed=True,
        exception=args.exception or "",
        command=args.command or "",
        tags=frozenset(map(check_tag, args.tag)),
        since="" if args.since is None else parse_time(args.since, now),
        until="" if args.until is None else parse_time(args.until, now),
    )


def _of_word(word: str | None, selection: Selection) -> Iterator[Case]:
    if word is None:
        store = the_store()
        yield from _selected(store, Catalog(store, listing_text).rows(), selection)
    elif not Path(word).is_dir() or word.rstrip("/").endswith((LIVE, GROUP)) or the_store().named(word) is not None:
        yield _named(word)
    else:
        for store in _stores_in(Path(word)):
            rows = [read_row(each) for each in store.list()]
            yield from _selected(store, rows, selection, below=Path(word))


def _stores_in(top: Path) -> Iterator[Store]:
    """Yield a directory and those in it, such as the results of pytest, in the order of their names."""
    for folder, names, _ in os.walk(top):
        names[:] = sorted(each for each in names if not each.endswith((LIVE, GROUP)) and not each.startswith("."))
        yield Store(Path(folder))


def _selected(
    store: Store, rows: Iterable[CatalogRow], selection: Selection, below: Path | None = None
) -> Iterator[Case]:
    tags = read_tags(store) if selection.tags else Tags(store)
    prefix = "" if below is None else str(store.directory.relative_to(below))
    for row in rows:
        # One that cannot be read may be any of those that are wanted.
        if row.problem or selection.matches(row, tags.of(row.name, row.run)):
            name = row.name if prefix in ("", ".") else f"{prefix}/{row.name}"
            yield _case(name, row)


def _named(word: str) -> Case:
    """Return a recording that was named: whether it failed, or what it is, does not matter."""
    store = the_store()
    path = store.resolve(word).absolute()
    if not path.exists():
        raise NoSuchRecording(word, str(store.directory))
    ending = LIVE if path.name.endswith(LIVE) else SEALED
    if not path.name.endswith(ending):
        return Case(word, path)
    row = read_row(Store(path.parent).stored(path.name.removesuffix(ending), ending))
    return _case(store.name_of(path) if path.parent == store.directory else word, row)


def _case(name: str, row: CatalogRow) -> Case:
    path = Path(row.path).absolute()
    if row.problem:
        return Case(name, path, problem=row.problem)
    what = row.exception or ("" if row.status is None else f"signal {-row.status}" if row.status < 0 else "")
    return Case(name, path, what or f"exit code {row.status}", command_text(row.command))
