"""`replaydbg ls`: list the recordings in the store, oldest first."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, is_terminal, print_json, print_table
from replaydbg.cli.common.read_tags import read_tags
from replaydbg.errors import UsageError
from replaydbg.remote.address import is_address, parse_store, shown
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.recording_text import COLUMNS, listing_text
from replaydbg.store.catalog import VALIDITIES, Catalog, CatalogRow, command_words
from replaydbg.store.directory import Store
from replaydbg.store.selection import SORTED_BY, Selection, parse_time
from replaydbg.store.tags import check_tag


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("store", nargs="?", metavar="URL", help="a remote store (default: the store of this machine)")
    parser.add_argument("--sort", choices=SORTED_BY, help="the order (default: by number, oldest first)")
    parser.add_argument("--reverse", action="store_true", help="reverse the order")
    parser.add_argument("--limit", type=int, metavar="N", help="only the last N recordings")
    ended = parser.add_mutually_exclusive_group()
    ended.add_argument("--failed", action="store_true", help="only failed runs: an exit code other than 0, or a signal")
    ended.add_argument("--passed", action="store_true", help="only runs with exit code 0")
    parser.add_argument("--exception", metavar="TYPE", help="only programs that ended with this uncaught exception")
    parser.add_argument("--command", metavar="TEXT", help="only commands with this text in them")
    parser.add_argument(
        "--commit",
        metavar="ID",
        help="only programs of this commit of their repository, or of one that begins so",
    )
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="only recordings with this tag")
    parser.add_argument(
        "--since", metavar="WHEN", help="only recordings of this time or later: 2026-11-27T10:30, or 3d (ago)"
    )
    parser.add_argument("--until", metavar="WHEN", help="only recordings from before this time")
    parser.add_argument("--validity", choices=VALIDITIES, help="only these, as `verify` found them")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the recordings."""
    selection = _selection(args)
    if args.limit is not None and args.limit < 1:
        raise UsageError(f"--limit must be at least 1 (got {args.limit}).")
    if args.store is not None:
        # Imported here, with fsspec: most listings are of this machine.
        from replaydbg.remote.listing import remote_rows

        where = parse_store(args.store)
        rows = remote_rows(where)
        return _list(args, selection, shown(where), [(row, ()) for row in rows], lambda: len(rows))
    store = the_store()
    catalog = Catalog(store, listing_text)
    tags = read_tags(store)
    if _is_plain(args) and not tags:
        return _print_all(store, catalog)
    found = [(row, tags.of(row.name, row.run)) for row in catalog.selected(*selection.as_sql())]
    return _list(args, selection, str(store.directory), found, lambda: len(store.files()))


def _list(
    args: argparse.Namespace,
    selection: Selection,
    where: str,
    rows: list[tuple[CatalogRow, tuple[str, ...]]],
    count: Callable[[], int],
) -> int:
    """Print the selected ones of some recordings, each with its tags, which are in a directory or a remote store.

    `count` counts all that are there.
    """
    found = [each for each in rows if selection.matches(*each)]
    if args.sort:
        found.sort(key=lambda each: SORTED_BY[args.sort](each[0]))  # type: ignore[arg-type,return-value]
    if args.reverse:
        found.reverse()
    found = found[-args.limit :] if args.limit else found
    if args.json:
        print_json({"store": where, "recordings": [_facts(*each) for each in found]})
        return 0
    if not found and not count():
        makes = f"replaydbg push REC {where}" if is_address(where) else "replaydbg record prog.py"
        print(f"No recordings in {where}. `{makes}` makes one.", file=sys.stderr)
        return 0
    if not found:
        print(f"No recording in {where} matches ({count():,} recordings).", file=sys.stderr)
        return 0
    _print(listing_text(row) + "".join(f" [{each}]" for each in words) for row, words in found)
    return 0


def _is_plain(args: argparse.Namespace) -> bool:
    """Whether all recordings are wanted as text, in their order."""
    return not any(value for name, value in vars(args).items() if name not in ("program", "no_fence"))


def _print_all(store: Store, catalog: Catalog) -> int:
    lines = catalog.lines()
    if not lines:
        print(f"No recordings in {store.directory}. `replaydbg record prog.py` makes one.", file=sys.stderr)
    elif is_terminal():
        _print(lines.split("\n"))
    else:
        print(lines)
    return 0


def _print(lines: Iterable[str]) -> None:
    print_table(COLUMNS, [each.split("\t") for each in lines], right=("events", "size", "time"))


def _selection(args: argparse.Namespace) -> Selection:
    now = datetime.now(UTC)
    return Selection(
        has_failed=True if args.failed else False if args.passed else None,
        exception=_exception(args.exception),
        command=_given("--command", args.command),
        commit=_given("--commit", args.commit).lower(),
        validity=args.validity or "",
        tags=frozenset(map(check_tag, args.tag)),
        since="" if args.since is None else parse_time(args.since, now),
        until="" if args.until is None else parse_time(args.until, now),
    )


def _exception(text: str | None) -> str:
    """Return the name of an exception, empty if none is given. Raises UsageError for what cannot be one."""
    name = _given("--exception", text)
    if name.endswith("."):
        raise UsageError(
            f"--exception must be the name of a class, such as ValueError or shop.OutOfStock (got {name!r})."
        )
    return name


def _given(option: str, text: str | None) -> str:
    """Return the value of an option, empty if it is not given. Raises UsageError for one that is given and empty."""
    if text == "":
        raise UsageError(f"{option} is empty, as if a variable of the shell were not set.")
    return text or ""


def _facts(row: CatalogRow, tags: tuple[str, ...]) -> JsonObject:
    facts: JsonObject = {
        "name": row.name,
        "path": row.path,
        "sealed": not row.live and not row.path.endswith("-live"),
        "size": row.size,
        "problem": row.problem or None,
        "validity": row.validity,
        "checked": row.checked or None,
        "tags": list(tags),
    }
    if row.problem:
        return facts
    return facts | {
        "created": row.created,
        "command": command_words(row.command),
        "commit": row.commit or None,
        "status": row.status,
        "exception": row.exception or None,
        "seconds": row.seconds,
        "events": row.events,
        "python": row.python,
        "processes": row.processes,
        "parent": row.parent or None,
    }
