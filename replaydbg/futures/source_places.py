"""Places in the program as text: file, line, function and the line itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

from replaydbg.events.show import printable
from replaydbg.futures.schedules.decisions import ThreadPlace
from replaydbg.log.sources import source_text


def source_line(sources: Mapping[str, bytes], place: ThreadPlace) -> str:
    """Return a line of the program without its indentation; empty: it is not known."""
    data = sources.get(place.file)
    lines = source_text(data).splitlines() if data is not None else []
    return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


def place_text(sources: Mapping[str, bytes], place: ThreadPlace) -> str:
    """Return a place with its line."""
    line = source_line(sources, place)
    text = f"{os.path.basename(place.file)}:{place.line} in {place.function}"  # noqa: PTH119 - of a recorded path
    return printable(f"{text}: {line}" if line else text)


def thread_name(threads: Mapping[int, str], lane: int) -> str:
    """Return the name of a thread for people."""
    return printable(threads.get(lane, f"thread {lane}"))
