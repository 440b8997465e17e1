"""Make the page of a session, or of a recording that cannot be replayed."""

from __future__ import annotations

from pathlib import Path

from replaydbg.debugger import Session
from replaydbg.errors import (
    CannotStart,
    EngineLost,
    ForgedMessage,
    NoFence,
    NotBuilt,
    ReplaydbgError,
    SecretsMasked,
    UnsupportedPython,
    WrongPython,
)
from replaydbg.pages.facts.collected import SECONDS, ShownRecording, collected, hidden_texts_of
from replaydbg.pages.facts.unreplayed import unreplayed
from replaydbg.pages.markup.page_document import failure_page

NOT_HERE: tuple[type[ReplaydbgError], ...] = (
    CannotStart,
    EngineLost,
    ForgedMessage,
    NoFence,
    NotBuilt,
    SecretsMasked,
    UnsupportedPython,
    WrongPython,
)
"""Why a recording that can be read is not replayed: its page shows what needs no replay."""


def page_of_session(session: Session, shown: ShownRecording, *, seconds: float = SECONDS) -> bytes:
    """Return the page of a session at its position. What takes longer than `seconds` is left out. Raises Cancelled."""
    hidden = hidden_texts_of(shown.path)
    return failure_page(collected(session, shown, hidden, seconds=seconds), hidden)


def page_without_replay(path: Path, name: str, reason: ReplaydbgError) -> bytes:
    """Return the page of a recording that cannot be replayed; `reason`: why. Raises what reading it raises."""
    hidden = hidden_texts_of(path)
    return failure_page(unreplayed(path, name, reason), hidden)
