"""The texts of a program's source files in a recording."""

from __future__ import annotations

import io
import tokenize

from replaydbg.errors import Corrupt
from replaydbg.events.values import ContentRef
from replaydbg.log.allowance import allowance
from replaydbg.log.reader import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def what_was_read(recording: Recording) -> dict[str, bytes]:
    """Return the sources that the importer itself read, by path; with cached bytecode it reads that instead."""
    return _read(recording, lambda path: not path.endswith(".pyc"))


def cached_modules(recording: Recording) -> dict[str, bytes]:
    """Return the cached bytecode that the importer read, by path."""
    return _read(recording, lambda path: path.endswith(".pyc"))


def _read(recording: Recording, is_wanted: Callable[[str], bool]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    # Many answers can refer to one content: their total size is limited like that of one part of the file.
    left = allowance(recording.stored("content") + recording.stored("world"))
    for answer in recording.world():
        if answer.operation != "read" or answer.raised or not is_wanted(answer.path):
            continue
        outcome = answer.outcome
        try:
            data = recording.content(outcome) if isinstance(outcome, ContentRef) else outcome
        except Corrupt:
            continue  # `verify` reports it
        if isinstance(data, bytes):
            left -= len(data)
            if left < 0:
                break
            found[answer.path] = data
    return found


def sources_of(recording: Recording) -> dict[str, bytes]:
    """Return the sources of the modules that the program imported, and of its script, by path; no standard library.

    The text that was read takes precedence; for modules with cached bytecode it is the file's text when the program
    ended. Missing ones are left out.
    """
    read = what_was_read(recording)
    found = {}
    for path, name in (recording.end.sources if recording.end is not None else {}).items():
        try:
            found[path] = read[path] if path in read else recording.section(f"source/{name}")
        except Corrupt:
            continue  # `verify` reports it
    return found


def recorded_source(recording: Recording, file: str, read: dict[str, bytes]) -> bytes | None:
    """Return the source of a file as recorded; None: the recording does not have it. `read` is `what_was_read`."""
    if file in read:
        return read[file]
    if recording.header.kind == "command" and file == "<string>":
        return recording.header.target.encode("utf-8", "surrogatepass")
    name = recording.end.sources.get(file) if recording.end is not None else None
    try:
        return recording.section(f"source/{name}") if name is not None else None
    except Corrupt:
        return None  # `verify` reports it


def source_text(data: bytes) -> str:
    """Return the text of a source file."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        return data.decode("utf-8", "replace")
