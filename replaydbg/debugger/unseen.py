"""What has changed of a value without being seen: a change is followed in the value itself, not further inside it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from replaydbg.debugger.paths import PlaceExpression
from replaydbg.debugger.questions import checked
from replaydbg.errors import AskFailed

if TYPE_CHECKING:
    from replaydbg.debugger.session import Session
    from replaydbg.engine.messages import Watch

LONGEST = 80
"""Characters of a value that are told."""


def unseen(session: Session, place: PlaceExpression, watch: Watch, seen: int, until: int) -> str:
    """Return what is to be said if the value that `watch` leads to at the line `until` was another one at `seen`.

    No change of it was seen between them: so it is the same object.
    """
    with closing(session.travel.at(until)) as worker:
        located = worker.locate(watch)
    known, now = (_content(session, count, located) if located[0] else None for count in (seen, until))
    if known is None or now is None or known == now:
        return ""
    text = now["text"] if len(now["text"]) <= LONGEST else now["text"][: LONGEST - 3] + "..."
    to = f", to {text}," if now["text"] != known["text"] else ""
    part = next((name for name, held in now["parts"].items() if held != known["parts"].get(name, held)), "")
    ask = f"`why {place.source}{part}` or " if part else ""
    return (
        f"it has changed since{to} in a way that is not followed: "
        f"what changes further inside a {now['type']} is not; ask {ask}`bisect snapshots --bad EXPR`"
    )


def _content(session: Session, count: int, located: tuple[int, int]) -> dict[str, Any] | None:
    """What an object and the containers in it held at a line; None: that cannot be told."""
    try:
        with closing(session.travel.at(count)) as worker:
            found: dict[str, Any] | None = checked(worker.ask({"do": "content", "object": located}, idle=session.idle))
            return found
    except AskFailed:
        return None
