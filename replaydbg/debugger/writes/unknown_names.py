"""Where a name is known that a frame does not know."""

from __future__ import annotations

from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.errors import AskFailed
from replaydbg.events.nearest_words import nearest

MOST_FRAMES = 50
"""Maximum number of outer frames that are searched for a variable, some 3 ms each."""


def hint_of(view: ReplayView, name: str, at: At) -> str:
    """Return where a name is known that is unknown in a frame, or which one is like it; empty: nowhere, and none."""
    try:
        if name in view.ask.names_in_module("__main__"):
            return f"; the main module has it: __main__.{name}"
        outer = range(at.frame + 1, min(len(view.ask.stack(at.lane)), at.frame + 1 + MOST_FRAMES))
        frame = next((each for each in outer if name in view.ask.local_names(At(each, at.lane))), 0)
        if frame:
            return f"; frame {frame} has it: use --frame {frame}, or at the prompt `frame {frame}`"
        return nearest(name, view.ask.names(at))
    except AskFailed:
        return ""  # the values there are too slow to count
