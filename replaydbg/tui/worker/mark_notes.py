"""Marks and their notes, which are stored beside the recording."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaydbg.log.allowance import load_json
from replaydbg.store.private import write_private

FORMAT = 1
LARGEST = 16 << 20
"""Maximum size in bytes of the file; a larger one is not ours."""


@dataclass(frozen=True, slots=True)
class MarkNote:
    """A named moment, with its note."""

    name: str
    event: int
    step: int
    text: str = ""


def notes_path(recording: Path) -> Path:
    """Return the path of the notes on `recording`."""
    return recording.with_name(recording.name + ".notes.json")


def load_notes(recording: Path) -> tuple[MarkNote, ...]:
    """Return the notes on `recording`; empty if the file is missing, or is something else."""
    try:
        with notes_path(recording).open("rb") as file:
            data = file.read(LARGEST + 1)
        value: Any = load_json(data) if len(data) <= LARGEST else {"format": None}
        if value["format"] != FORMAT:
            return ()
        return tuple(
            MarkNote(str(each["name"]), int(each["event"]), int(each["step"]), str(each.get("note", "")))
            for each in value["marks"]
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return ()


def save_notes(recording: Path, notes: tuple[MarkNote, ...]) -> None:
    """Save `notes`; if empty, delete the file. Raises OSError if it cannot be written."""
    path = notes_path(recording)
    if not notes:
        path.unlink(missing_ok=True)
        return
    marks = [{"name": each.name, "event": each.event, "step": each.step, "note": each.text} for each in notes]
    write_private(path, (json.dumps({"format": FORMAT, "marks": marks}, indent=1) + "\n").encode())
