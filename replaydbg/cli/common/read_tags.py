"""The tags of a store for commands that only show or select recordings by them: what is unreadable is a warning."""

from __future__ import annotations

import sys

from replaydbg.events.show import printable
from replaydbg.store.directory import Store
from replaydbg.store.tags import Tags


def read_tags(store: Store) -> Tags:
    """Return the tags; print a warning on stderr if some of them cannot be read."""
    tags = Tags(store)
    if tags.unreadable:
        print(f"replaydbg: {printable(tags.warning())}", file=sys.stderr)
    return tags
