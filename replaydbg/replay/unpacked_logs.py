"""The files that the process of a replay maps: the logs of a recording, and its copies of large files."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import Corrupt
from replaydbg.log.reader import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from replaydbg.log.sealed.sections import InPlace

MOST_IN_MEMORY = 256 << 20
"""Bytes. A section of at most this size is unpacked into memory, a larger one into a file."""
LARGE_FILES = Path("/var/tmp")
"""The directory for large temporary files; /tmp is itself memory on many machines."""


@dataclass(frozen=True, slots=True)
class UnpackedLogs:
    """The part of a recording that the program's process maps."""

    files: dict[str, BinaryIO]
    """The logs, and the copies of large files unless they are used in the recording itself."""
    is_cut: bool = False
    """Whether a part of the log is damaged or missing."""
    content: InPlace | None = None
    """The position of the copies in the recording; None: they are one of the files."""
    content_size: int = 0
    """Their undamaged bytes."""

    @property
    def content_place(self) -> tuple[int, ...] | None:
        """Where the copies are in the recording, as the core takes it; None: they are one of the files."""
        place = self.content
        return None if place is None else (place.first, place.stride, self.content_size, place.size, place.mtime_ns)

    def mapped(self) -> int:
        """Return how many bytes the process maps."""
        return self.content_size * (self.content is not None) + sum(
            os.fstat(file.fileno()).st_size for file in self.files.values()
        )


def unpack_logs(recording: Recording, stack: ExitStack, *, in_place: bool = True) -> UnpackedLogs:
    """Return the recording's logs, and its copies of large files; `in_place`: they may be used in the recording itself.

    Raises Corrupt if a part of the modules is missing.
    """
    content = recording.content_in_place() if in_place else None
    names = ("log", "world", "content") if content is None else ("log", "world")
    files = {name: stack.enter_context(_section_file(name, recording)) for name in names}
    unpacked = recording.unpack(files)
    if unpacked.is_world_cut:
        raise Corrupt(str(recording.path), "a part of the modules that it imported is missing")
    if content is not None and not unpacked.content:  # none of it is undamaged, so none is referred to
        return UnpackedLogs(files | {"content": stack.enter_context(memory_file("content"))}, unpacked.is_cut)
    return UnpackedLogs(files, unpacked.is_cut, content, unpacked.content)


def _section_file(name: str, recording: Recording) -> BinaryIO:
    """Return an empty file for a section: in memory, unless it is large."""
    if recording.size(name) <= MOST_IN_MEMORY:
        return memory_file(name)
    import tempfile  # imported for a large recording only
    from typing import cast

    return cast("BinaryIO", tempfile.TemporaryFile(dir=LARGE_FILES if LARGE_FILES.is_dir() else None))


def followed_logs(live: Path, stack: ExitStack) -> dict[str, BinaryIO]:
    """Return the logs of a running program, as soon as they exist; raises Corrupt if they never do."""
    # Imported here: few replays run behind their recording.
    import time

    for _ in range(1000):
        logs = [live / name for name in ("log", "world")]
        if all(each.exists() and each.stat().st_size for each in logs):
            files = {each.name: stack.enter_context(each.open("rb")) for each in logs}
            # Copies of large files are not followed: a program that reads one is replayed from the sealed recording.
            return files | {"content": stack.enter_context(memory_file("content"))}
        time.sleep(0.01)
    raise Corrupt(str(live), "its program has not begun, or it is of a standby that has not taken over")


def memory_file(name: str) -> BinaryIO:
    """Return an empty file in memory."""
    return os.fdopen(os.memfd_create(f"replaydbg-{name}"), "w+b")
