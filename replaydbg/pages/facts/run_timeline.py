"""When each thread ran, and each process that this one started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replaydbg.debugger import Session
from replaydbg.debugger.calls.thread_spans import MOST_ENTRIES, ThreadSpans
from replaydbg.events.records import Control
from replaydbg.log.group import GroupProcess
from replaydbg.log.reader import open_recording
from replaydbg.pages.facts.page_facts import Instant, Timeline, TimelineBar
from replaydbg.render import texts
from replaydbg.render.source.run_extent import extent_of

BINS = 400
"""Stretches of the run that can be told apart on a page."""
MOST_BARS = 24
MOST_RAISED = 60
MOST_SPANS = 400


def timeline_of(session: Session, processes: Iterable[GroupProcess]) -> Timeline:
    """Return the timeline of a session at its failure; `processes`: those that this one started."""
    first, last = extent_of(session)
    # The interpreter's end is left out: since 3.13 it prints tracebacks by thousands of lines of its own.
    own = max(session.index.end, session.here.count, first + 1)
    last = max(min(last, own + (own - first) // 20 + 1), first + 1)
    bars = [*_threads(session, first, last), *_processes(session, processes, first, last)]
    raised = [
        each
        for each in session.index.raised
        if each.is_own and first <= each.count <= last and each.type not in texts.SILENT
    ]
    step = max(-(-len(raised) // MOST_RAISED), 1)
    shown = tuple(
        (Instant(texts.moment_text(session.index.moment(each.count)), each.count), each.text) for each in raised[::step]
    )
    return Timeline(first, last, tuple(bars[:MOST_BARS]), shown, max(len(bars) - MOST_BARS, 0))


def _threads(session: Session, first: int, last: int) -> Iterator[TimelineBar]:
    spans = ThreadSpans(session.index.starts, (last - first) // BINS)
    with open_recording(session.path) as recording:
        for number, entry in enumerate(recording.events()):
            if number > MOST_ENTRIES:
                break
            if isinstance(entry, Control):
                spans.take(entry)
    for each in spans.finish(session.index.total):
        seen = tuple((max(a, first), min(b, last)) for a, b in each.spans if b >= first and a <= last)
        if seen:
            # Those that end up next to each other are as one.
            yield TimelineBar(f"thread {each.lane} {each.name}".rstrip(), seen[:MOST_SPANS], lane=each.lane)


def _processes(session: Session, processes: Iterable[GroupProcess], first: int, last: int) -> Iterator[TimelineBar]:
    starts = session.index.starts
    for each in processes:
        begun = starts[min(each.event, len(starts) - 1)]
        # 0: the recording does not say when this process learned of its end.
        ended = starts[min(each.waited, len(starts) - 1)] if each.waited else last
        if begun > last or ended < first:
            continue
        yield TimelineBar(f"process {each.number} ({each.how})", ((max(begun, first), min(ended, last)),), True)
