"""Queries of the panels besides the present position: each answer is a list of moments to go to."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from replaydbg.commands.landmarks import visits as visits_of
from replaydbg.commands.places import parse_place
from replaydbg.commands.searching import SearchRequest, parse_search
from replaydbg.commands.view import View
from replaydbg.commands.whole_run import MOST_CHANGES, parse_log
from replaydbg.debugger.assertions import Assertion
from replaydbg.debugger.assertions import bisect_assertion as bisect_assertion_of
from replaydbg.debugger.bisection.bisect_results import Bisected, Culprit, Probe, Verdict, VerdictChange
from replaydbg.debugger.bisection.run_bisection import MOST_LISTED, Bisection
from replaydbg.debugger.long_work import OutOfTime
from replaydbg.debugger.session_results import LastWrite, Moment, ValueChange
from replaydbg.events.show import printable
from replaydbg.render import bisection_text, texts
from replaydbg.render.channels_text import end_text
from replaydbg.tui.view_model import AnswerList, Choice, EventsAnswer, TimelineMark, Track
from replaydbg.tui.worker.scene_builder import short_place

LONGEST = 5.0
"""Time limit in seconds of a search for values: each takes some 20 ms, more on a busy machine."""

LONGER = 4
"""By what factor the limit grows if the user has the search repeated."""

VISITS_AROUND = 250
"""Maximum number of visits of a line that are shown before this moment, and of those after it."""

MOST_LOGGED = 5000
AROUND = 100
"""Number of events that are shown before this moment; a quarter as many after it."""

MOST_EVENTS = 300_000
"""Size of a log above which events deep inside it take too long to read: the prompt can still show them."""

LIVE = 0.1
"""Seconds between two updates of partial results."""


def who_wrote(view: View, expression: str) -> AnswerList:
    """Return who wrote a value last, and links to follow its origin further."""
    write = view.session.run.why(expression, **view.at)
    return AnswerList(f"Who wrote {printable(expression)}", tuple(_written(view, write)), "Enter goes there")


def about_write(view: View, write: LastWrite) -> AnswerList:
    """Return the answer for a last write that is known already."""
    return AnswerList(f"Who wrote {printable(write.expression)}", tuple(_written(view, write)), "Enter goes there")


def _written(view: View, write: LastWrite) -> Iterator[Choice]:
    for line in texts.why_report(view.session, write, view.group):
        count = line.write.count if line.write is not None else 0
        yield Choice(printable(line.text), "bold" if count else "", count)
    session, found = view.session, write.content if write.content is not None else write
    if write.changed is not None and write.changed.moment is not None:
        moment = texts.moment_text(write.changed.moment)
        yield Choice(f"go to {moment}, where the value had changed", "accent", write.changed.count)
    if found.content is None and found.moment is not None:
        if write.content is not None:
            yield Choice(f"go to {texts.moment_text(found.moment)}, where the object changed", "accent", found.count)
        for name, asked_at in texts.to_follow(write):
            count = session.index.count(asked_at)
            there = "there" if count == found.count else f"to {texts.moment_text(asked_at)}"
            yield Choice(f"go {there} and show who wrote {name}", "accent", count, why=name)
        for _, end in texts.senders_of(session, found, view.group):
            yield Choice(f"go to the sender: {end_text(view.group.opened, end)}", "accent", end=end)


def history(view: View, expression: str, seconds: float | None = None) -> AnswerList:
    """Return all values that an expression had over the run, as far as they are found in time (default: LONGEST)."""
    session, seconds = view.session, LONGEST if seconds is None else seconds
    found: list[ValueChange] = []
    history = session.run.history(expression, **view.at, most=MOST_CHANGES + 1)
    is_unfinished = False
    try:
        with session.work.limited(seconds):
            for each in history:
                found.append(each)
    except OutOfTime:
        is_unfinished = True
    is_cut = len(found) > MOST_CHANGES
    del found[MOST_CHANGES:]
    choices = [Choice(printable(texts.change_text(session, each)), count=each.count) for each in found]
    at = max((at for at, each in enumerate(found) if each.count <= view.here.count), default=0)
    if is_unfinished:
        choices.append(_search_longer(expression, len(found), seconds))
    elif not choices:
        choices.append(Choice("The value never changed.", "dim"))
    if history.note:
        choices.append(Choice(printable(f"{expression}: {history.note}"), "dim"))
    more = f" (first {len(found):,})" if found and (is_unfinished or is_cut) else ""
    if is_cut:
        choices.append(Choice(printable(f"More follow: `:history {expression} x {10 * MOST_CHANGES}`"), "dim"))
    return AnswerList(f"Values of {printable(expression)}{more}", tuple(choices), at=at)


def _search_longer(expression: str, found: int, seconds: float) -> Choice:
    so_far = f"{found:,} found" if found else "none found yet"
    longer = LONGER * seconds
    text = f"Stopped after {seconds:.0f} s, {so_far}: Enter searches again, for up to {longer:.0f} s"
    return Choice(text, "accent", values=(expression, longer))


def visits(view: View, file: str, line: int) -> AnswerList:
    """Return all moments at which a line was about to run; if there are very many, those around this moment."""
    found, is_more = visits_of(view, f"{file}:{line}")
    session, here, total = view.session, view.here.count, view.here.total
    numbers = [f"{number:>5}" for number in range(1, len(found) + 1)]
    if is_more and session.index.count(found[-1]) < here:
        found = _around(view, file, line)
        numbers = [""] * len(found)
    counts = [session.index.count(each) for each in found]
    choices = tuple(
        Choice(f"{number}  {texts.moment_text(moment):>8}  {texts.percent_text(count, total):>4}", count=count)
        for number, moment, count in zip(numbers, found, counts, strict=True)
    )
    at = max((at for at, count in enumerate(counts) if count <= here), default=0)
    which = "" if not is_more else ", first ones shown" if numbers[0] else ", nearest ones shown"
    number = session.index.lines_hit(file).get(line, len(found)) if is_more else len(found)
    return AnswerList(f"Visits of line {line}: {number:,}{which}", choices, at=at)


def _around(view: View, file: str, line: int) -> list[Moment]:
    """Return the last visits of a line before this moment and the first ones after it."""
    session, here = view.session, view.here.count
    span = 16 * VISITS_AROUND
    while True:
        first = max(here - span, 1)
        before: deque[Moment] = deque(maxlen=VISITS_AROUND)
        after: list[Moment] = []
        for each in session.run.passages(file, line, first=first):
            (before if session.index.count(each) <= here else after).append(each)
            if len(after) == VISITS_AROUND:
                break
        if len(before) == VISITS_AROUND or first == 1:
            return [*before, *after]
        span *= 8


def logged(view: View, file: str, line: int, text: str) -> tuple[Track, tuple[str, ...]]:
    """Return the values of an expression (`EXPR` or `EXPR if COND`) at each visit of a line: a track, and text."""
    _, expression, condition = parse_log(f"here:{line} {text}")
    return _logged(view, file, line, expression, condition, f"log {file}:{line} {text}")


def log_line(view: View, text: str) -> tuple[Track, tuple[str, ...]]:
    """Return the same for the arguments of the prompt's `log`, which begin with the place."""
    place, expression, condition = parse_log(text)
    file, line, _ = parse_place(view, place, is_line=True)
    return _logged(view, file, line, expression, condition, f"log {text}")


def _logged(
    view: View, file: str, line: int, expression: str, condition: str, key: str
) -> tuple[Track, tuple[str, ...]]:
    session = view.session
    marks: list[TimelineMark] = []
    lines: list[str] = []
    more = 0
    for each in session.run.log(file, line, expression, condition=condition):
        if len(marks) == MOST_LOGGED:
            more = 1
            break
        marks.append(TimelineMark(each.count, printable(each.text)))
        lines.append(printable(texts.logged_text(session, each)))
    track = Track(printable(key), f"p {printable(expression)}", tuple(marks), more)
    return track, tuple(lines)


def events_around(view: View) -> EventsAnswer:
    """Return the program's events around this moment."""
    session, here = view.session, view.here.moment.event
    if session.index.events > MOST_EVENTS:
        return EventsAnswer(((0, "Too many events to list here. `:events` shows them."),), here)
    found = texts.events_of(session, here - AROUND + 1, here + AROUND // 4)
    return EventsAnswer(tuple((each.number, printable(texts.event_text(each))) for each in found), here)


# ---- bisection ----


def bisect(view: View, kind: str, text: str, show: Callable[[Track], object]) -> AnswerList:
    """Return the first line after which something was wrong; `show` is called with each look meanwhile.

    `text` may have the options of the prompt's `bisect`.
    """
    session = view.session
    wanted = parse_search(text, kind)
    looks: list[Probe] = []
    shown_at = 0.0

    def show_look(look: Probe) -> None:
        nonlocal shown_at
        looks.append(look)
        if time.monotonic() - shown_at > LIVE:
            shown_at = time.monotonic()
            show(_track(looks))

    search = wanted.search(session, show_look)
    if wanted.is_all:
        return _all_changes(view, wanted, search, show)
    found = wanted.found(search)
    show(_track(looks, found.culprit))
    return _bisected(view, found)


def bisect_claim(view: View, claim: Assertion, show: Callable[[Track], object]) -> AnswerList:
    """Return the line after which a failing test's assertion became false."""
    found = bisect_assertion_of(view.session, claim)
    if found is None:
        return AnswerList(
            "Bisected", (Choice(f"{printable(claim.source)} was never true in this test.", "bold"),), "Esc closes"
        )
    show(_track(found.looks, found.culprit))
    return _bisected(view, found)


def _bisected(view: View, found: Bisected) -> AnswerList:
    session, culprit = view.session, found.culprit
    first, *others = bisection_text.summary_lines(session, found)
    choices = [Choice(printable(first), "bold", culprit.count if culprit is not None else 0)]
    choices += [Choice(printable(line)) for line in others]
    probes = sorted(found.looks, key=lambda each: each.count)
    choices += [Choice(printable(bisection_text.probe_text(session, each)), count=each.count) for each in probes]
    return AnswerList("Bisected", tuple(choices), "Enter goes there" if culprit is not None else "Esc closes")


def _all_changes(view: View, wanted: SearchRequest, search: Bisection, show: Callable[[Track], object]) -> AnswerList:
    """Return every line after which it became wrong, or right again."""
    found = list(search.verdict_changes(MOST_LISTED + 1))
    more = len(found) - MOST_LISTED
    del found[MOST_LISTED:]
    marks = tuple(
        TimelineMark(each.count, "bad" if each.is_bad else "good", is_faint=not each.is_bad) for each in found
    )
    show(Track("bisect", "x bisect", marks, max(more, 0)))
    if not found:
        return AnswerList(
            "Bisected", (Choice(f"{printable(wanted.predicate.text)}: never changes", "bold"),), "Esc closes"
        )
    choices = [Choice(_change_text(view, each), count=each.count) for each in found]
    if more > 0:
        choices.append(Choice(f"more follow: continue with --from {texts.moment_text(found[-1].moment)}", "dim"))
    if search.note:
        choices.append(Choice(printable(search.note), "dim"))
    at = max((at for at, each in enumerate(found) if each.count <= view.here.count), default=0)
    return AnswerList(f"{printable(wanted.predicate.text)}: {len(found):,} changes", tuple(choices), at=at)


def _change_text(view: View, flip: VerdictChange) -> str:
    session = view.session
    moment = texts.moment_text(flip.moment)
    share = texts.percent_text(flip.count, view.here.total)
    place = short_place(session, flip.file, flip.line, flip.function)
    line = session.source_line(flip.file, flip.line)
    return f"{moment:>8} {share:>4}  {'bad' if flip.is_bad else 'good again':<10}  {place}  {printable(line)}"


def _track(looks: Sequence[Probe], culprit: Culprit | None = None) -> Track:
    marks = [TimelineMark(each.count, each.verdict.value, is_faint=each.verdict is not Verdict.BAD) for each in looks]
    if culprit is not None:
        marks.append(TimelineMark(culprit.count, Verdict.BAD.value))
    # Without any look there is no row.
    return Track("bisect", "x bisect" if marks else "", tuple(marks))


QUESTIONS: dict[str, Callable[..., object]] = {
    each.__name__: each for each in (who_wrote, history, visits, logged, log_line, events_around, bisect, bisect_claim)
}
"""The queries by name."""
