"""`replaydbg gc`: delete shared blocks that no recording uses any more, or recordings that no rule keeps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json, print_table
from replaydbg.config import load_settings
from replaydbg.errors import RemoteFailed, UsageError
from replaydbg.events.show import printable
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.remote.address import is_address, parse_store, shown
from replaydbg.render.measures import show_size
from replaydbg.render.recording_text import listing_text
from replaydbg.store.catalog import Catalog, CatalogRow
from replaydbg.store.clearing import Cleared, blocks_in, clear
from replaydbg.store.collecting import Collected, collect, only_collector
from replaydbg.store.directory import Store
from replaydbg.store.leftovers import remove_leftovers
from replaydbg.store.retention import Decision, KeepRule, decide, in_future, parse_rule, rule_forms
from replaydbg.store.room import Room
from replaydbg.store.sealed_leftovers import remove_sealed_leftovers
from replaydbg.store.selection import FORM
from replaydbg.store.tags import PINNED, Tags, TagsUnreadable
from replaydbg.store.verifying import verify_row

_TESTS = "test-results"
_MOST_NAMES = 10
"""Number of recordings that a line names."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "directory",
        nargs="?",
        help="a directory of test recordings or of groups of processes, one group, or the URL of a remote store "
        "(default: test-results, and the store)",
    )
    parser.add_argument(
        "--recordings", action="store_true", help="remove the recordings of the store that no rule keeps"
    )
    parser.add_argument(
        "--keep",
        action="append",
        metavar="RULE",
        help=f"keep recordings by this rule; repeatable, instead of the setting `keep`: {', '.join(rule_forms())}",
    )
    parser.add_argument(
        "--to",
        metavar="URL",
        help="send each recording to a remote store, or to another directory, before it is removed here",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would become of each recording, and why")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Clean up; return 1 if that failed."""
    if not args.recordings:
        if args.keep or args.dry_run or args.to:
            raise UsageError("--keep, --to and --dry-run need --recordings.")
        if args.directory is not None and is_address(args.directory):
            return _clear_pieces(args.directory, as_json=args.json)
        return _clear_blocks(args.directory, as_json=args.json)
    if args.directory:
        raise UsageError("DIRECTORY cannot be combined with --recordings.")
    return _remove_recordings(args.keep, args.to, is_dry=args.dry_run, as_json=args.json)


# ---- recordings ----


def _remove_recordings(keep: list[str] | None, to: str | None, *, is_dry: bool, as_json: bool) -> int:
    rules = [parse_rule(each) for each in (load_settings().keep if keep is None else keep)]
    if not rules:
        raise UsageError("There are no rules, so nothing is removed: give --keep RULE, or set `keep` in your settings.")
    store = the_store()
    if to:
        to = parse_store(to if is_address(to) else f"file://{Path(to).absolute()}")
    keep_elsewhere = _sender(to) if to else lambda path: None
    if is_dry or not store.directory.is_dir():
        decisions, collected = _decisions(store, rules, is_dry=True), []
    else:
        with only_collector(store):
            decisions = _decisions(store, rules, is_dry=False)
            collected = list(collect(store, decisions, partial(_is_pinned, store, rules), keep_elsewhere))
        if (store.directory / DIRECTORY).is_dir():
            clear(store.directory)
    _warn_of_future(decisions)
    if as_json:
        facts = [{"name": each.row.name, "size": each.row.size, "rule": each.rule or None} for each in decisions]
        removed = [{"name": each.name, "size": each.size, "why_not": each.why_not or None} for each in collected]
        print_json({"store": str(store.directory), "dry_run": is_dry, "decisions": facts, "removed": removed})
    elif is_dry:
        _print_decisions(decisions)
    else:
        _print_collected(store, collected, len(decisions), to)
    return 1 if any(each.why_not for each in collected) else 0


def _decisions(store: Store, rules: list[KeepRule], *, is_dry: bool) -> list[Decision]:
    tags = _tags(store, rules)
    catalog, now = Catalog(store, listing_text), datetime.now(UTC)

    def verify(rows: list[CatalogRow]) -> list[CatalogRow]:
        found = {row.name: verify_row(row) for row in rows}
        if not is_dry:  # that writes nothing
            catalog.note_validity(found, now.strftime(FORM))
        return [row._replace(validity=found[row.name]) for row in rows]

    return decide(
        catalog.rows(),
        lambda row: tags.of(row.name, row.run),
        rules,
        now,
        room=lambda: Room(store).take,
        verify=verify,
    )


def _tags(store: Store, rules: list[KeepRule]) -> Tags:
    """Return the tags. Raises TagsUnreadable if a rule needs them, and not all can be read."""
    tags = Tags(store)
    if tags.unreadable and any(each.kind == PINNED for each in rules):
        raise TagsUnreadable(tags.unreadable, "no recording was removed")
    return tags


def _is_pinned(store: Store, rules: list[KeepRule], row: CatalogRow) -> bool:
    """Whether a recording is pinned by now."""
    return any(each.kind == PINNED for each in rules) and PINNED in _tags(store, rules).of(row.name, row.run)


def _warn_of_future(decisions: list[Decision]) -> None:
    """Name the recordings that rules take for the newest although they may be old."""
    found = [printable(each.name) for each in in_future([each.row for each in decisions], datetime.now(UTC))]
    if found:
        more = f" and {len(found) - _MOST_NAMES:,} more" if len(found) > _MOST_NAMES else ""
        names = ", ".join(found[:_MOST_NAMES]) + more
        text = "These recordings have a time in the future, so rules take them for the newest"
        print(f"{text}: {names}.", file=sys.stderr)


def _print_decisions(decisions: list[Decision]) -> None:
    rows = [(printable(each.row.name), show_size(each.row.size), each.rule or "remove") for each in decisions]
    print_table(("name", "size", "rule"), rows, right=("size",))


def _print_collected(store: Store, collected: list[Collected], count: int, to: str | None) -> None:
    for each in (each for each in collected if each.why_not):
        print(f"Not removed: {printable(each.name)} ({each.why_not}).")
    removed = [each for each in collected if not each.why_not]
    size = show_size(sum(each.size for each in removed))
    what = "1 recording" if len(removed) == 1 else f"{len(removed):,} recordings"
    done = f"Moved {what} ({size}) to {shown(to)}" if to else f"Removed {what} ({size})"
    print(f"{done}; {count - len(removed):,} stay in {store.directory}.")


def _sender(url: str) -> Callable[[Path], None]:
    """Return what sends a recording to a remote store."""
    # Imported here, with fsspec: most recordings are removed for good.
    from replaydbg.remote.push import push_under_free_name
    from replaydbg.remote.remote_store import RemoteStore

    remote = RemoteStore(url)

    failed: list[RemoteFailed] = []

    def send(path: Path) -> None:
        if failed:  # it would not answer the others either, and each would wait for that
            raise failed[0]
        try:
            push_under_free_name(path, remote)
        except RemoteFailed as error:
            failed.append(error)
            raise

    return send


# ---- blocks ----


def _clear_blocks(name: str | None, *, as_json: bool) -> int:
    if name is None:
        remove_leftovers(the_store().directory)
        remove_sealed_leftovers(the_store().directory)
    directory, places = _places(name)
    cleared = [(place, clear(place)) for place in places]
    problems = [
        each.why_not if place == directory else f"{place}: {each.why_not}" for place, each in cleared if each.why_not
    ]
    whole = Cleared(*(sum(getattr(each, name) for _, each in cleared) for name in ("blocks", "size", "kept")))
    if as_json:
        print_json({"directory": str(directory), **asdict(whole), "why_not": " ".join(problems)})
        return 1 if problems else 0
    for problem in problems:
        print(problem)
    if len(problems) < len(cleared):
        print(f"Removed {whole.blocks:,} blocks, {show_size(whole.size)}; {whole.kept:,} are in use or too new.")
    return 1 if problems else 0


def _places(name: str | None) -> tuple[Path, list[Path]]:
    """Return the directory to clean up, and the directories whose blocks can be cleared. Raises UsageError for none.

    `name` is what the user gave: nothing for the recordings of tests here, and for those of the store.
    """
    store = the_store()
    directory = Path(_TESTS if name is None else name)
    if name is None and not directory.is_dir():
        directory = store.directory
    elif name is not None and not directory.is_dir():
        directory = store.find_group(name) or directory
    places = blocks_in(directory)
    if name is None and directory != store.directory and (store.directory / DIRECTORY).is_dir():
        places.append(store.directory)
    if not places:
        raise UsageError(f"{str(directory)!r} has no directory {DIRECTORY!r}, so there are no shared blocks.")
    return directory, places


# ---- pieces of a remote store ----


def _clear_pieces(url: str, *, as_json: bool) -> int:
    # Imported here, with fsspec: most clean-ups are on this machine.
    from replaydbg.remote.listing import clear_pieces

    pieces, size = clear_pieces(parse_store(url))
    if as_json:
        print_json({"store": shown(url), "pieces": pieces, "size": size})
    else:
        print(f"Removed {pieces:,} pieces, {show_size(size)}. Those of the last day stay.")
    return 0
