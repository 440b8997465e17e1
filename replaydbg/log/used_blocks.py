"""Which shared blocks a recording needs: read without its header, since a clean-up asks all recordings of a store."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.log.header_and_end import JSON_LIMIT, parse_end
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.sections import SealedFile


def used_blocks(path: Path) -> set[str]:
    """Return the names of all files outside the recording at `path` that it needs.

    Raises Corrupt if damage hides them; NoSuchRecording, NotARecording, BlocksMissing as opening does.
    """
    if path.is_dir():
        with open_recording(path) as recording:
            return recording.shared_names()
    with closing(SealedFile(path, with_secrets=False, with_signature=False)) as sections:
        if not sections.size("end"):
            raise Corrupt(str(path), "its end is missing")
        pieces = b"".join(sections.stored_pieces("end")) if sections.size("end") <= JSON_LIMIT else b""
        return sections.shared_names() | set(parse_end(str(path), pieces).sources.values())
