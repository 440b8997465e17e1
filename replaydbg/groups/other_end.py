"""Find the other end of what a process receives or sends at its position, to go there."""

from __future__ import annotations

from typing import NamedTuple

from replaydbg.debugger import Session
from replaydbg.engine.protocol import NEXT, RunOrder
from replaydbg.engine.reports import Where
from replaydbg.errors import NoSuchMoment, UsageError
from replaydbg.events.records import Event
from replaydbg.groups.group_session import GroupSession
from replaydbg.groups.messages import Message, MessageEnd, messages_of, moved_events
from replaydbg.log.reader import open_recording

MOST_EVENTS = 20
"""Events of one line that are looked at."""

UNFINISHED = "@last"
"""Where a call is found that had not ended when the recording ended."""


class OtherEnds(NamedTuple):
    """The other ends of what events of a process received or sent."""

    process: int
    """The process that these events belong to: a child's before its fork are its parent's."""
    events: tuple[int, ...]
    messages: tuple[Message, ...]
    ends: tuple[MessageEnd, ...]
    """The sends for receives, the receives for sends; each once, in the order of the bytes."""


def event_here(session: Session) -> int:
    """Return the last event before a session's position, which may be inside a line; 0: there is none."""
    # Inside a line, the moment's event is that before the line.
    return session.cursor.look().event if session.here.moment.point else session.here.moment.event


def find_other_ends(group: GroupSession, session: Session, event: int | None, *, is_receive: bool) -> OtherEnds:
    """Return the other ends of an event, or without one of what happens at the position.

    That is the last event; if nothing moved there in that direction, what the line that is about to run receives, or
    sends, with its calls. Raises UsageError if that is nothing.
    """
    opened, number = group.opened, group.number_of(session)
    if event is None and session.here.is_changed:
        raise UsageError("This run was changed. Give an event of the recorded run, or go back to it by a seek.")
    events = [event_here(session) if event is None else event]
    if event is None and not moved_events(opened, number, events, is_receive=is_receive):
        coming = events_of_line(session) if not session.here.moment.point else []
        events = moved_events(opened, number, coming, is_receive=is_receive) or events
        if len(events) > MOST_EVENTS:
            did = "receives" if is_receive else "sends"
            raise UsageError(f"This line {did} something {len(events):,} times. Step into it, or give an event.")
    messages = [
        message
        for each in events
        # Before the first event there is nothing that could have moved.
        for message in messages_of(opened, number, max(each, 1), is_receive=is_receive, is_at_prompt=True)
    ]
    ends = dict.fromkeys(part.end for message in messages for part in message.parts)
    owner, _ = opened.owner(number, max(events[0], 1))
    return OtherEnds(owner, tuple(events), tuple(messages), tuple(ends))


def events_of_line(session: Session) -> list[int]:
    """Return the events of the line that is about to run, with those of its calls, in its thread."""
    here, index = session.here, session.index
    session.work.begin("searching for what this line receives or sends")
    worker = session.cursor.clone()
    try:
        where = worker.run(RunOrder(rule=NEXT, until=index.total, lane=here.lane), idle=session.work.idle)
    finally:
        worker.kill()
    last = where.count if isinstance(where, Where) and where.why == "rule" else index.total + 1
    found = index.events_between(here.count, last)
    if not found:
        return []
    with open_recording(session.path) as recording:
        entries = recording.events(first=found[0], last=found[-1], controls=False)
        return [each.number for each in entries if isinstance(each, Event) and each.lane == here.lane]


def go_to_end(session: Session, end: MessageEnd) -> None:
    """Go to a send or a receive: into the line that made it."""
    if not end.event:
        session.seek(UNFINISHED)
        return
    try:
        session.seek(f"{end.event}:0")
    except NoSuchMoment:
        session.seek(str(end.event))  # C code made it: the first line after it
