"""Warn when a command is about to run a program from a recording that this user did not make."""

from __future__ import annotations

import sys

from replaydbg.log.sealed.origin import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def warn_if_foreign(path: Path, name: str, *, quiet: bool = False) -> None:
    """Print one sentence on stderr if the recording at `path` is not this user's; `name` is how the user names it."""
    if quiet or sys.stderr is None or is_own(path):
        return
    # Imported here: the user's own recordings do not need it.
    from replaydbg.render.replay_text import foreign_text

    text = foreign_text(path, name)
    if text:
        print(f"replaydbg: {text}", file=sys.stderr)
