"""The option `--resources` of the heap commands: descriptors and other resources beside the objects of a moment."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.output import open_named
from replaydbg.render.json_data.resources_json import resources_facts, unclosed_facts
from replaydbg.render.resources_text import resources_tables, unclosed_tables
from replaydbg.render.tables import Table
from replaydbg.resources.follow import ResourceHistory, resources_at
from replaydbg.resources.unclosed import unclosed


def add_resources(parser: argparse.ArgumentParser, text: str) -> None:
    """Declare the option; `text` is its help."""
    parser.add_argument("--resources", action="store_true", help=text)


def resources_beside(args: argparse.Namespace, *events: int) -> tuple[dict[str, object], list[Table]]:
    """Return the resources after an event, or the difference of those after two: as JSON data, and as tables.

    Both are empty without the option.
    """
    if not args.resources:
        return {}, []
    with open_named(args.recording) as recording:
        cwd = recording.header.cwd
        if len(events) == 1:
            found = resources_at(recording, events[0])
            return {"resources": resources_facts(found)}, resources_tables(found, cwd)
        history = ResourceHistory(recording)
        left = unclosed(*(history.at(event) for event in sorted(events)))
        return {"resources": unclosed_facts(left)}, unclosed_tables(left, cwd)
