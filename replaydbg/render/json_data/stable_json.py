"""Stable properties of a group as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replaydbg.events.records import Site
from replaydbg.groups.group_waits import Blocked
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.stable_properties import Deadlock, Termination
from replaydbg.groups.stretches import Stretch
from replaydbg.render.json_data.cuts_json import plain_value
from replaydbg.render.json_data.json_object import JsonObject


def positions_facts(positions: Mapping[int, int]) -> JsonObject:
    """Return the positions of a cut as data."""
    return {str(process): position for process, position in sorted(positions.items())}


def deadlock_facts(opened: OpenedGroup, found: Deadlock, lines: Mapping[int, Site]) -> JsonObject:
    """Return a deadlock as data; `lines` has those of the main threads that are known, by process."""
    return {
        "since": {"process": found.last.process, "position": found.last.position},
        "cut": positions_facts(found.cut.positions),
        "is_certain": found.is_certain,
        "is_consistent": not found.cut.doubts,
        "threads": [_blocked(opened, each, lines) for each in found.core],
        "others": [_blocked(opened, each, lines) for each in found.others],
    }


def termination_facts(opened: OpenedGroup, found: Termination, lines: Mapping[int, Site]) -> JsonObject:
    """Return a termination as data."""
    return {
        "since": positions_facts(found.cut.positions),
        "threads": [_blocked(opened, each, lines) for each in found.blocked],
    }


def stretch_facts(chain: Sequence[Mapping[int, int]], found: Sequence[Stretch]) -> list[JsonObject]:
    """Return stretches of cuts with the same total as data."""
    return [
        {
            "total": plain_value(each.total),
            "first": each.first,
            "last": each.last,
            "since": positions_facts(chain[each.first]),
        }
        for each in found
    ]


def _blocked(opened: OpenedGroup, each: Blocked, lines: Mapping[int, Site]) -> JsonObject:
    process, event = opened.owner(each.process, each.event)
    own = lines.get(each.process) if not each.lane else None
    site = own or (opened.site(process, event) if each.event else None)
    return {
        "process": each.process,
        "thread": each.lane,
        "position": each.position,
        "event": each.event or None,
        "waits_for": each.kind,
        "name": each.name or None,
        "of": list(each.holders),
        "file": site.file if site is not None else None,
        "line": site.line if site is not None else None,
        "source": (opened.line(process, site) or None) if site is not None else None,
    }
