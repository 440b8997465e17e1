"""A recording as text: its header and its end, and the line of a listing."""

from __future__ import annotations

import shlex
from functools import lru_cache

from replaydbg.events.show import printable, show_status
from replaydbg.events.stops import StopReason
from replaydbg.log.reader import Recording
from replaydbg.render.measures import show_seconds, show_size
from replaydbg.secrets.age_keys import has_age
from replaydbg.store.catalog import DAMAGED, CatalogRow, command_text
from replaydbg.store.directory import GROUP

MOST_EXTENSIONS = 100
"""Number of extension modules that are listed."""


def recording_lines(recording: Recording, *, with_values: bool) -> list[tuple[str, str]]:
    """Return what a recording says of its run, each line with its label; `with_values`: of environment variables."""
    header, end, log = recording.header, recording.end, recording.log_header
    lines = [
        ("recording", f"{recording.name} ({recording.path})"),
        ("command", shlex.join(header.command)),
        ("directory", header.cwd),
        ("created", f"{header.created}, by replaydbg {header.tool}, format {header.format}"),
        ("python", f"{header.python.version} ({header.python.executable}) {shlex.join(header.python.flags)}".rstrip()),
        ("platform", header.platform),
        ("streams", ", ".join(header.stdio)),
    ]
    if header.branch is not None:
        forked = f"forked by process {header.branch.process} at event {header.branch.event:,}"
        lines.append(("process", f"{header.process} of its group, {forked}"))
    elif header.process:
        lines.append(("process", f"{header.process} of its group"))
    if header.durable:
        lines.append(("durable", "yes: it was recorded to survive power loss"))
    if header.chaos is not None:
        lines.append(("chaos", f"seed {header.chaos}"))
    if future := header.raw.get("future"):
        lines.append(("future", _future(future)))
    if continued := header.raw.get("continued"):
        lines.append(("checkpoint", _checkpoint(continued)))
    for each in header.resumptions:
        lines.append(("resumed", f"from {each.recording}, after event {each.event:,}, {each.when}"))
    variables = sorted(header.env.items())
    if with_values:
        lines += [("variable", f"{name}={value}") for name, value in variables]
    else:
        lines.append(("variables", " ".join(name for name, _ in variables) or "none"))
    if end is not None:
        times = f"{show_seconds(end.seconds)}, {show_seconds(end.cpu_seconds)} of processor time"
        lines.append(("ended", f"{show_status(end.status)}, after {times}"))
    if log is not None:
        lines.append(("events", f"{end.events if end is not None else log.crossings:,}"))
        if log.stopped is not StopReason.NOT_STOPPED:
            lines.append(("stopped", log.stopped.sentence))
    sizes = (f"{name} {show_size(recording.size(name))}" for name in recording.sections if "/" not in name)
    lines.append(("sections", ", ".join(sizes)))
    if recording.masked:
        lines.append(("secrets", _secrets(recording)))
    if recording.signature is not None:
        lines.append(("signed", f"by {recording.signature}"))
    if end is not None:
        if end.reason:
            lines.append(("reason", end.reason))
        lines.append(("sources", f"{len(end.sources):,} files; {len(end.packages):,} packages were installed"))
        lines.append(("extensions", _extensions(recording)))
        for note in end.notes:
            first, *more = note.text.split("\n")
            lines.append(("note", f"{first} ({note.kind}{f', {note.count:,} times' if note.count > 1 else ''})"))
            lines.extend(("", line) for line in more)
    return lines


def _secrets(recording: Recording) -> str:
    """Return how many secrets are masked, where, and whether this user can see them."""
    where = ", ".join(f"{count:,} in {name}" for name, count in recording.masked.items())
    if not recording.is_hidden:
        return f"masked ({where}); you have a key for them"
    if not recording.masked_for:
        return f"masked for good ({where}): no key could be used when it was sealed, so nobody can see them"
    missing = "you have no key for them" if has_age() else "this Python lacks the package pyrage, which a key needs"
    return f"masked ({where}), encrypted for {' '.join(recording.masked_for)}; {missing}"


def _future(facts: object) -> str:
    """Return which run a future comes from; the header of a damaged recording can have anything in it."""
    known = facts if isinstance(facts, dict) else {}
    base, event, seed = (known.get(each, "?") for each in ("from", "event", "seed"))
    return f"of {base}, after event {event}, with seed {seed}"


def _checkpoint(continued: object) -> str:
    """Return where the program of this log began: at a checkpoint. Anybody may have written the header."""
    facts = continued if isinstance(continued, dict) else {}
    number, events = (facts.get(name) if isinstance(facts.get(name), int) else 0 for name in ("number", "events"))
    return f"the log begins at checkpoint {number:,}, of {facts.get('when')}; {events:,} events came before it"


def _extensions(recording: Recording) -> str:
    """Return the files that the importer loaded as extension modules: a replay loads them from there."""
    asked = (each for each in recording.world() if each.operation == "stat" and not each.raised)
    found = list(dict.fromkeys(each.path for each in asked if each.path.endswith(".so")))
    more = f" and {len(found) - MOST_EXTENSIONS:,} more" if len(found) > MOST_EXTENSIONS else ""
    return (" ".join(found[:MOST_EXTENSIONS]) or "none") + more


COLUMNS = ("name", "created", "ended", "events", "size", "time", "command")


def listing_text(row: CatalogRow) -> str:
    """Return the cells of a recording, separated by tabs; the command is last."""
    return "\t".join(_cells(row))


def _cells(row: CatalogRow) -> tuple[str, ...]:
    if row.problem:
        return (printable(row.name), "", "unreadable", "", show_size(row.size), "", printable(row.problem))
    return (
        printable(row.name),
        printable(row.created[:19].replace("T", " ")),
        _ended(row),
        f"{row.events:,}",
        show_size(row.size),
        "" if row.seconds is None else show_seconds(row.seconds),
        _command(row.command),
    )


def _ended(row: CatalogRow) -> str:
    if row.validity == DAMAGED:
        return DAMAGED
    if row.status is None:
        return "not sealed"
    ended = printable(row.exception.rpartition(".")[2]) or show_status(row.status)
    if not row.live:
        return ended
    # Of a group it is the end of the first process; others may still run, or were killed with their recorder.
    is_group = row.path.rpartition("/")[0].endswith(GROUP)
    return f"{ended}, {row.live:,} not sealed" if is_group else f"{ended}, not sealed"


@lru_cache(maxsize=1000)
def _command(words: str) -> str:
    return printable(command_text(words))
