"""Answers of a session as lines of text."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Here, Lane, LastWrite, Logged, Moment, Origin, ValueChange, Variable
from replaydbg.debugger.source.data_flow import SELF_EVIDENT
from replaydbg.debugger.source.place_expressions import places_read
from replaydbg.errors import clause, quoted
from replaydbg.events.records import Event
from replaydbg.events.show import show_call, show_outcome
from replaydbg.groups.group_session import GroupSession, ReceivedMessages
from replaydbg.groups.messages import Message, MessageEnd
from replaydbg.log.group import name_in_group
from replaydbg.log.reader import open_recording
from replaydbg.render.channels_text import end_text
from replaydbg.render.paths import short_path

SILENT = ("StopIteration", "GeneratorExit", "StopAsyncIteration")
"""Exceptions that are part of how loops end."""

MOST_SENDERS = 4
"""The most sends that are listed of what one event received."""

MOST_NAMES = 4
"""The most variables that are proposed as the next to follow."""


def moment_text(moment: Moment) -> str:
    """Return a moment as every front end takes it: `120:35`."""
    return f"{moment.event}:{moment.step}" + (f".{moment.point}" if moment.point else "")


def preemptions_text(number: object) -> str:
    """Return a number of preemptions in words."""
    return f"{number} preemption{'s' if number != 1 else ''}"


def recording_name(session: Session) -> str:
    """Return the recording's name, such as `run-12`, or `run-12/3` of a process in a group."""
    return name_in_group(session.path) or session.path.name.removesuffix(".rdbg").removesuffix(".rdbg-live")


def percent_text(count: int, total: int) -> str:
    """Return how far into the run a line is; 100 % is its end alone."""
    return f"{100 * count // total if total else 100}%"


def file_text(session: Session, file: str) -> str:
    """Return a file's name as short as it stays clear."""
    return short_path(file, session.header.cwd)


def place_text(session: Session, file: str, line: int, function: str) -> str:
    """Return a place as `file:line function`."""
    return f"{file_text(session, file)}:{line} {function}"


def lane_text(lane: int, lanes: tuple[Lane, ...] = ()) -> str:
    """Return a thread's number and name."""
    name = next((each.name for each in lanes if each.id == lane), "")
    return f"thread {lane} {name}".rstrip()


def here_text(session: Session, here: Here) -> str:
    """Return the current position in one line."""
    top = here.top
    place = place_text(session, top.file, top.line, top.function) if top is not None else "(no Python frame)"
    parts = [moment_text(here.moment), percent_text(here.count, here.total), lane_text(here.lane, here.lanes), place]
    return "  ".join(parts) + ("  (changed: differs from the recorded run)" if here.is_changed else "")


def reason_text(session: Session, here: Here) -> str:
    """Return the reason for the stop, if it is of interest; empty: it is not."""
    text = f": {here.message}" if here.message else ""
    if here.why == "exception":
        return f"raises {here.message}" + (f" (breakpoint {here.breakpoint})" if here.breakpoint else "")
    raised = "" if here.is_changed else _raised_at(session, here)
    if here.why == "breakpoint":
        return f"breakpoint {here.breakpoint}{text}"
    if here.why == "end":
        return f"end{text}"
    if here.why == "start":
        return f"start{text}"
    return here.message or raised


def _raised_at(session: Session, here: Here) -> str:
    """Return the exception that the line which is about to run raises."""
    raised = session.index.raised
    at = bisect_left(raised, here.count, key=lambda each: each.count)
    found = raised[at] if at < len(raised) and raised[at].count == here.count and here.count else None
    if found is None or found.type in SILENT:
        return ""
    return f"raises {found.text}"


def variable_text(each: Variable) -> str:
    """Return a variable and its value."""
    return f"{each.name} = {each.text}"


def runner_text(session: Session, count: int, lane: int) -> str:
    """Return the thread that ran the line `count`, and the asyncio task in it."""
    task = session.tasks.name_at(count, lane)
    return f"thread {lane}" + (f" task {task}" if task else "")


def change_text(session: Session, change: ValueChange) -> str:
    """Return a change of a value in one line."""
    place = place_text(session, change.file, change.line, change.function)
    runner = runner_text(session, change.count, change.lane)
    return f"{moment_text(change.moment):>8}  {runner}  {place}  {change.text or '(deleted)'}"


def logged_text(session: Session, logged: Logged) -> str:
    """Return a line of a retroactive log."""
    return f"{moment_text(logged.moment):>8}  {runner_text(session, logged.count, logged.lane)}  {logged.text}"


def event_text(event: Event) -> str:
    """Return a crossing with what it gave."""
    return f"event {event.number}: {show_call(event)} {show_outcome(event)}"


def events_of(session: Session, first: int, last: int) -> list[Event]:
    """Return the events from `first` to `last`."""
    if last < first:
        return []
    with open_recording(session.path) as recording:
        found = recording.events(first=max(first, 1), last=last, controls=False)
        return [each for each in found if isinstance(each, Event)]


_CHANGED_ELSEWHERE = "The content of the object was last changed elsewhere:"


class WhyLine(NamedTuple):
    """A line about the last write of a value."""

    text: str
    write: LastWrite | None = None
    """The write whose headline this is; None for other lines."""


def why_lines(
    session: Session,
    why: LastWrite,
    *,
    follow: str,
    group: GroupSession | None = None,
    jump: Callable[[int, MessageEnd], str] | None = None,
) -> Iterator[str]:
    """Yield what is known of the last write of a value, and at its end how to go on.

    `follow` is the command that does so, with `{name}`, or `{quoted}` for a shell, and `{moment}` in it. With the
    `group` it is shown who sent what was received; `jump` returns the command that goes from an event to a send.
    """
    yield from (each.text for each in why_report(session, why, group))
    last = why.content if why.content is not None else why
    further = [(name, moment_text(moment)) for name, moment in to_follow(why)]
    orders = [follow.format(name=name, quoted=quoted(name), moment=moment) for name, moment in further]
    if group is not None and jump is not None:
        orders += [jump(event, end) for event, end in senders_of(session, last, group)]
    if orders:
        yield "Next: " + ", or ".join(orders)


def senders_of(session: Session, why: LastWrite, group: GroupSession) -> list[tuple[int, MessageEnd]]:
    """Return the events of a write that received something from a single send, each with that send."""
    found = []
    for event, messages in group.received(session, why.events).messages.items():
        ends = {part.end for message in messages for part in message.parts}
        if len(ends) == 1:
            found.append((event, ends.pop()))
    # Several receives of one message lead to one place.
    return [pair for at, pair in enumerate(found) if pair[1] not in [end for _, end in found[:at]]]


def why_report(session: Session, why: LastWrite, group: GroupSession | None = None) -> Iterator[WhyLine]:
    """Yield what is known of the last write of a value; with the `group`, who sent what was received for it."""
    if why.note:
        yield WhyLine(f"{why.expression}: {clause(why.note)}.")
    if why.moment is None:
        yield WhyLine(f"{why.expression} was not written before this moment.")
        return
    verb = "was passed as an argument" if why.is_argument else "was bound" if why.is_binding else "was written"
    verb = f"moved there from index {why.moved.index}" if why.moved is not None else verb
    verb += " again with an equal value" if why.is_equal else ""
    if why.changed is not None and why.count < why.changed.count:
        verb += " (the line had begun earlier)"
    place = place_text(session, why.file, why.line, why.function)
    share = percent_text(why.count, session.index.total)
    runner = runner_text(session, why.count, why.lane)
    yield WhyLine(f"{why.expression} {verb} at {moment_text(why.moment)}  {share}  {runner}  {place}", why)
    yield from (WhyLine(each) for each in _write_lines(session, why, group))
    if why.content is not None:
        is_made = not why.content.before
        yield WhyLine("The object was made here:" if is_made else _CHANGED_ELSEWHERE)
        yield from why_report(session, why.content, group)


def _write_lines(session: Session, why: LastWrite, group: GroupSession | None) -> Iterator[str]:
    if why.source:
        yield f"  -> {why.line}  {why.source}"
    if why.parts:
        yield from _part_lines(why)
    else:
        yield f"  before  {why.before or '(not set)'}"
        yield f"  after   {why.after or '(deleted)'}"
    yield from _origin_lines(session, why, group)
    if why.changed is not None:
        yield from _changed_lines(session, why.changed)


def _origin_lines(session: Session, why: LastWrite, group: GroupSession | None) -> Iterator[str]:
    """Yield where the value came from, what is not known of that, and what else the line asked for."""
    events = {each.number: each for each in _events(session, why)}
    received = group.received(session, why.events) if group is not None else ReceivedMessages({}, "")
    named: set[int] = set()
    for text, numbers in _origin_texts(session, why.origins, "  "):
        named |= set(numbers)
        shown = [event_text(events[each]) for each in numbers if each in events]
        yield text + (f", from {'; '.join(shown)}" if shown else "")
        indent = " " * (len(text) - len(text.lstrip()) + 2)
        for number in numbers:
            yield from _sender_lines(group, received.messages.get(number, ()), indent)
    if received.problem:
        yield f"  note: who sent what was received is unknown: {clause(received.problem)}"
    if why.unknown and why.unknown != SELF_EVIDENT:
        yield f"  note: {why.unknown}"
    for number, event in events.items():
        if number not in named:
            yield f"  event during this line: {event_text(event)}"
            yield from _sender_lines(group, received.messages.get(number, ()), "    ")


def _sender_lines(group: GroupSession | None, messages: Sequence[Message], indent: str) -> Iterator[str]:
    """Yield who sent what an event received."""
    if group is None:
        return
    for message in messages:
        parts = list({part.end: part for part in message.parts}.values())
        for part in parts[:MOST_SENDERS]:
            doubt = f" ({part.certainty})" if part.certainty != "certain" else ""
            yield f"{indent}sent by {end_text(group.opened, part.end, ' ')}{doubt}  {part.end.text}".rstrip()
        if len(parts) > MOST_SENDERS:
            yield f"{indent}and {len(parts) - MOST_SENDERS:,} more sends"
        if message.unmatched:
            yield f"{indent}sent by no recorded process" + (f" ({message.unmatched:,} bytes)" if parts else "")


def _origin_texts(session: Session, origins: Sequence[Origin], indent: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for each in origins:
        if each.kind == "constant" and not each.is_same:
            continue  # the line shows it
        verb = "from" if each.is_same else "computed from"
        returned = ""
        if each.moment is not None:
            place = place_text(session, each.file, each.line, each.function)
            returned = f", returned at {moment_text(each.moment)}  {place}  {each.source}".rstrip()
        yield f"{indent}{verb} {each.text}{returned}", each.events
        yield from _origin_texts(session, each.parts, indent + "  ")


def _part_lines(why: LastWrite) -> Iterator[str]:
    for each in why.parts:
        name = f"{why.expression}{each.name}"
        yield f"  before  {name} = {each.before}" if each.before else f"  before  ({name} not set)"
        yield f"  after   {name} = {each.after}" if each.after else f"  after   ({name} deleted)"


def _changed_lines(session: Session, change: LastWrite) -> Iterator[str]:
    """Yield where the value that was written again had come from."""
    assert change.moment is not None, change
    place = place_text(session, change.file, change.line, change.function)
    runner = runner_text(session, change.count, change.lane)
    yield f"  The value had changed at {moment_text(change.moment)}  {runner}  {place}"
    if change.source:
        yield f"  -> {change.line}  {change.source}"
    yield f"  before  {change.before or '(not set)'}"


def _events(session: Session, why: LastWrite) -> list[Event]:
    if not why.events:
        return []
    wanted = set(why.events)
    return [each for each in events_of(session, min(wanted), max(wanted)) if each.number in wanted]


def to_follow(why: LastWrite) -> list[tuple[str, Moment]]:
    """Return what may be asked next, and where: what the value came from, else what the lines read.

    Of an object whose content was last changed elsewhere: what it was changed to, then where it was got from. It may
    be reached from there, too, which explains that change.
    """
    last = why.content if why.content is not None else why
    if last.moment is None:
        return []
    found = dict.fromkeys(_places_in(last.origins, last.moment))
    if not last.origins or last.unknown:
        places = places_read(last.source)
        # An attribute of a module is often a function; what is one is unknown here.
        of_modules = [each for each in places if re.split(r"\W", each, maxsplit=1)[0] not in last.names]
        of_values = [each for each in places if each not in of_modules]
        found |= dict.fromkeys((name, last.moment) for name in (*of_values, *names_to_follow(last), *of_modules))
    named = [each for each in found if not _has_slice(each[0])]
    if last is why or why.moment is None:
        return named[:MOST_NAMES]
    shared = [each for each in dict.fromkeys(_places_in(why.origins, why.moment)) if not _has_slice(each[0])]
    return [*named[: MOST_NAMES - 1], *(each for each in shared[:1] if each not in named)]


def _has_slice(text: str) -> bool:
    """Whether a place has a part of a sequence, such as `a[1:]`: that is an object of its own, which nobody wrote."""
    try:
        return any(isinstance(each, ast.Slice) for each in ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError:
        return False


def _places_in(origins: Sequence[Origin], moment: Moment) -> Iterator[tuple[str, Moment]]:
    for each in origins:
        if each.kind == "place":
            yield each.text, moment
        yield from _places_in(each.parts, each.moment or moment)


def names_to_follow(why: LastWrite) -> tuple[str, ...]:
    """Return the variables of the line that its value may have come from, without functions and modules."""
    called = _called(why.source)
    return tuple(
        name
        for name in why.names
        if name not in called and not hasattr(builtins, name) and name not in sys.stdlib_module_names
    )


def _called(source: str) -> set[str]:
    text = source.strip()
    for attempt in (text, text + " pass", f"{text}\n    pass", text.removeprefix("el")):
        try:
            tree = ast.parse(attempt)
        except SyntaxError:
            continue
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        return {each.id for each in calls if isinstance(each, ast.Name)}
    return set()
