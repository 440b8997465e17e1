"""Cuts of a group as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from replaydbg.debugger.values.values_at_moments import ModuleValue
from replaydbg.distributed.checkpoint_policies import EVENTS, TIME, CheckpointPositions, Policy, Recovery
from replaydbg.distributed.matching.channels import MessageChannel
from replaydbg.events.show import printable
from replaydbg.groups.group_cuts import FlyingMessage, GroupCut, GroupCuts
from replaydbg.groups.live_cuts import CheckedCut
from replaydbg.groups.messages import MessageEnd
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.render.channels_text import end_line, end_text

COLUMNS = ("#", "event", "of", "asked for", "last call")
RIGHT = ("#", "event", "of", "asked for")
"""The columns that hold numbers."""

FLYING_COLUMNS = ("channel", "from", "to", "bytes", "sent by", "received by", "content")
VALUE_COLUMNS = ("expression", "process", "value")

MOST_BYTES = 60
"""Bytes of a message that are shown."""

MOST_TEXT = 400
"""Characters of a value that are shown."""


def cut_text(positions: Mapping[int, int]) -> str:
    """Return a cut in one line, such as `1@211 2@902`."""
    return " ".join(f"{process}@{position}" for process, position in sorted(positions.items()))


def position_rows(opened: OpenedGroup, cut: GroupCut, last: Mapping[int, int]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each process of a cut; `last` has their numbers of events."""
    opened.read_sites([(process, position) for process, position in cut.positions.items()])
    for process, position in sorted(cut.positions.items()):
        asked = cut.wanted.get(process)
        owner, event = opened.owner(process, position)
        site = opened.site(owner, event) if position else None
        end = MessageEnd(owner, event, event, site, opened.line(owner, site) if site is not None else "")
        place = "not begun" if not position else end_line(opened, end)
        yield (
            str(process),
            f"{position:,}",
            f"{last[process]:,}",
            f"{asked:,}" if asked is not None and asked != position else "",
            place.partition("  ")[2] if site is not None else place,
        )


def flying_rows(
    opened: OpenedGroup, messages: Sequence[FlyingMessage], contents: Sequence[bytes | None] | None
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each message in flight; without `contents` they have no content."""
    for at, message in enumerate(messages):
        channel = message.channel
        yield (
            f"{channel.number} {channel.kind}",
            ", ".join(map(str, channel.senders)),
            ", ".join(map(str, channel.receivers)),
            f"{message.length:,}" + ("" if message.is_whole else " (rest)"),
            end_line(opened, message.send) + ("" if message.certainty == "certain" else f"  {message.certainty}"),
            end_line(opened, message.receive) if message.receive is not None else "nobody",
            content_text(contents[at]) if contents is not None else "",
        )


LIVE_COLUMNS = ("#", "time (UTC)", "taken by", "name", "cut", "in flight")
LIVE_RIGHT = ("#",)
"""The columns that hold numbers."""


def live_row(cuts: GroupCuts, each: CheckedCut) -> tuple[str, ...]:
    """Return the cells of a live cut."""
    messages = cuts.in_flight(each.cut)
    length = sum(message.length for message in messages)
    live = each.live
    moment = datetime.fromtimestamp(live.time // 10**9, UTC).isoformat(sep=" ")[:19]
    return (
        str(each.number),
        f"{moment}.{live.time // 10**6 % 1000:03}",
        f"{live.process}@{live.position}" if live.process else "replaydbg",
        printable(live.name),
        cut_text(each.cut.positions),
        f"{len(messages):,} ({length:,} bytes)" if messages else "nothing",
    )


def content_text(content: bytes | None) -> str:
    """Return the bytes of a message, cut if they are many."""
    if content is None:
        return "unknown"
    return repr(content[:MOST_BYTES]) + (
        f" and {len(content) - MOST_BYTES:,} more" if len(content) > MOST_BYTES else ""
    )


def value_text(process: int, value: ModuleValue) -> str:
    """Return the value of an expression in a process as a line."""
    return f"{process}\t{printable(short(value.text)) if value.text else f'no value: {printable(value.reason)}'}"


def short(text: str) -> str:
    """Return a text, cut if it is long."""
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}... ({len(text):,} characters)"


def cut_remarks(
    opened: OpenedGroup, cut: GroupCut, unfinished: Sequence[tuple[MessageChannel, MessageEnd]]
) -> Iterator[str]:
    """Yield sentences about a cut."""
    if cut.doubts:
        yield "It is not known whether this cut is consistent:"
        yield from (f"{each}." for each in cut.doubts)
    for channel, send in unfinished:
        yield (
            f"{channel.kind} {channel.name}: a send had begun but not ended "
            f"({end_text(opened, send, ', ')}). How many of its bytes were in flight is not known."
        )


POLICY_COLUMNS = ("policy", "failed", "checkpoints", "forced", "recovery line", "events lost", "of", "to the start")
POLICY_RIGHT = ("checkpoints", "forced", "events lost", "of")
"""The columns that hold numbers."""


def policy_text(policy: Policy) -> str:
    """Return a policy as the user writes it."""
    if policy.trigger == TIME:
        return f"{policy.kind}:{policy.every // 10**6}ms"
    return f"{policy.kind}:{policy.every}" + (f":{policy.trigger}" if policy.trigger != EVENTS else "")


def policy_row(
    policy: Policy, failed: Sequence[int], checkpoints: CheckpointPositions, found: Recovery
) -> tuple[str, ...]:
    """Return the cells of a policy and a failure."""
    lost = sum(found.lost.values())
    return (
        policy_text(policy),
        ", ".join(map(str, failed)),
        f"{checkpoints.total:,}",
        f"{checkpoints.forced:,}",
        cut_text(found.line),
        f"{lost:,}",
        f"{found.executed:,}",
        ", ".join(map(str, found.to_the_start)),
    )
