"""The texts of a program's source files that a recording holds."""

from __future__ import annotations

from replaydbg.errors import Corrupt
from replaydbg.events.values import ContentRef
from replaydbg.log.allowance import allowance
from replaydbg.log.reader import Recording


def what_was_read(recording: Recording) -> dict[str, bytes]:
    """Return the sources that the importer itself read, by path; with cached bytecode it reads that instead."""
    found: dict[str, bytes] = {}
    # Many answers can refer to one content: together they are no longer than the file lets one part be.
    left = allowance(recording.stored("content") + recording.stored("world"))
    for answer in recording.world():
        if answer.operation != "read" or answer.raised or answer.path.endswith(".pyc"):
            continue
        outcome = answer.outcome
        try:
            data = recording.content(outcome) if isinstance(outcome, ContentRef) else outcome
        except Corrupt:
            continue  # named by `verify`
        if isinstance(data, bytes):
            left -= len(data)
            if left < 0:
                break
            found[answer.path] = data
    return found


def sources_of(recording: Recording) -> dict[str, bytes]:
    """Return the sources of the modules that the program imported, and of its script, by path; no standard library.

    What was read counts; of modules with cached bytecode it is what lay there when the program ended. Missing ones are
    left out.
    """
    read = what_was_read(recording)
    found = {}
    for path, name in (recording.end.sources if recording.end is not None else {}).items():
        try:
            found[path] = read[path] if path in read else recording.section(f"source/{name}")
        except Corrupt:
            continue  # named by `verify`
    return found
