"""Channels of a group, and the messages in them, as JSON data."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.distributed.edges import HappensBefore
from replaydbg.distributed.matching.channels import MessageChannel
from replaydbg.distributed.matching.columns import Moves
from replaydbg.distributed.matching.matching import Matched
from replaydbg.groups.messages import Contradicted, Message, MessageEnd
from replaydbg.render.json_data.json_object import JsonObject


def channel_facts(found: Matched, apart: Contradicted | None) -> JsonObject:
    """Return a channel as data."""
    return {
        **_channel(found.channel),
        "from": list(found.channel.senders),
        "to": list(found.channel.receivers),
        "sends": len(found.sends),
        "receives": len(found.receives),
        "sent": found.sent,
        "received": found.received,
        "never_received": found.lost if found.channel.senders else 0,
        "from_outside": found.from_nowhere,
        "ambiguous": found.ambiguous,
        "contradiction": _contradiction(apart) if apart is not None else None,
        "is_received_early": found.early is not None,
        "doubt": found.channel.doubt,
        "waiting_to_send": _open(found.sends),
        "waiting_to_receive": _open(found.receives),
    }


def edge_facts(edge: HappensBefore) -> JsonObject:
    """Return what orders two processes as data."""
    return {
        "kind": edge.kind,
        "signal": edge.signal or None,
        "process": edge.process,
        "event": edge.event,
        "begun": edge.after,
        "to_process": edge.to_process,
        "to_event": edge.to_event,
        "is_certain": edge.is_certain,
    }


def _channel(channel: MessageChannel) -> JsonObject:
    return {
        "number": channel.number,
        "kind": channel.kind,
        "name": channel.name,
        "own": channel.own,
        "peer": channel.peer,
        "path": channel.path,
        "is_urgent": channel.is_urgent,
    }


def _open(moves: Moves) -> list[JsonObject]:
    """Return the calls that had not ended, each with the number of events before it."""
    return [
        {"process": moves.members[index].process, "begun": moves.members[index].transfers.begun[row]}
        for index, row in moves.open
    ]


def _contradiction(apart: Contradicted) -> JsonObject:
    return {
        "first": apart.first,
        "last": apart.last,
        "send": end_facts(apart.send),
        "receive": end_facts(apart.receive),
    }


def end_facts(end: MessageEnd) -> JsonObject:
    """Return a send or a receive as data."""
    site = end.site
    return {
        "process": end.process,
        "event": end.event or None,
        "begun": end.begun,
        "file": site.file if site is not None else None,
        "line": site.line if site is not None else None,
        "function": site.function if site is not None else None,
        "callee": site.gate if site is not None else None,
        "source": end.text,
    }


def message_facts(messages: Sequence[Message]) -> list[JsonObject]:
    """Return what an event sent or received as data."""
    return [
        {
            "channel": _channel(message.channel),
            "way": "receive" if message.is_receive else "send",
            "length": message.length,
            "peeks": message.peeks,
            "parts": [
                {**end_facts(part.end), "first": part.first, "length": part.length, "certainty": part.certainty}
                for part in message.parts
            ],
            "unmatched": message.unmatched,
            "passed": [{"kind": end.kind, "own": end.own, "path": end.path} for end in message.passed],
        }
        for message in messages
    ]
