"""Commands that go from one notable moment to the next: snapshots, exceptions, marks, visits of a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from replaydbg.commands.motion import go_to
from replaydbg.commands.places import parse_place
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.debugger.session import Session
from replaydbg.debugger.session_results import Moment
from replaydbg.debugger.source.source_files import is_library
from replaydbg.errors import UsageError
from replaydbg.render import texts

MOST_VISITS = 1000
"""The most visits of a line that are listed."""

MOST_TRIED = 200
"""The most exceptions that are checked for one of the program's own code: each takes some milliseconds."""

_WAYS = ("next", "previous")


def _way(rest: str, usage: str) -> bool:
    """Whether the direction is forward."""
    word = rest.strip() or "next"
    found = [each for each in _WAYS if each.startswith(word)]
    if len(found) != 1:
        raise UsageError(f"usage: {usage}")
    return found[0] == "next"


def _go(view: View, counts: Sequence[int], *, is_on: bool, what: str) -> None:
    here = view.here.count
    nearest = min if is_on else max
    beyond = [each for each in counts if (each > here if is_on else each < here)]
    if not beyond:
        raise UsageError(f"No {'later' if is_on else 'earlier'} {what}.")
    go_to(view, nearest(beyond))


def snapshot(view: View, rest: str) -> None:
    """Go to the next snapshot, the one before, or to the one with a number."""
    session = view.session
    word = rest.strip().lstrip("#")
    is_on = not word.isdecimal() and _way(rest, "snapshot [next|previous|N]")
    if not session.heap.taken:
        raise UsageError("The recording has no snapshots; `replaydbg record --snapshot-every 250ms` takes some.")
    if word.isdecimal():
        numbers = [each.number for each in session.heap.taken]
        if int(word) not in numbers:
            raise UsageError(f"No such snapshot: {word}. The recording has #{numbers[0]} to #{numbers[-1]}.")
        go_to(view, f"@#{int(word)}")
        return
    counts = session.heap.counts_of_snapshots("@#")
    _go(view, [counts[f"#{each.number}"] for each in session.heap.taken], is_on=is_on, what="snapshot")


def _landmark(view: View, rest: str) -> None:
    session = view.session
    is_on = _way(rest, "landmark [next|previous]")
    here = view.here.count
    raised = [each.count for each in session.index.raised if each.type not in texts.SILENT]
    marks = [session.index.count(each) for each in session.marks.moments.values()]
    beyond = {each for each in raised if each >= session.first_own} | set(marks)
    nearest_first = sorted((each for each in beyond if (each > here) is is_on and each != here), reverse=not is_on)
    for count in nearest_first[:MOST_TRIED]:
        session.work.idle()
        # Libraries mostly handle their own exceptions.
        if count in marks or _is_in_own_code(session, count):
            go_to(view, count)
            return
    what = (
        "exception of your code or mark"
        if len(nearest_first) <= MOST_TRIED
        else f"exception of your code among the nearest {MOST_TRIED} exceptions"
    )
    raise UsageError(f"No {'later' if is_on else 'earlier'} {what}.")


def visits(view: View, place: str) -> tuple[list[Moment], bool]:
    """Return when a line was about to run, and whether there are more than that."""
    file, line, function = parse_place(view, place)
    found = list(islice(view.session.run.passages(file, line, function), MOST_VISITS + 1))
    return found[:MOST_VISITS], len(found) > MOST_VISITS


def _visits(view: View, rest: str) -> None:
    found, is_more = visits(view, rest)
    session = view.session
    for number, moment in enumerate(found, 1):
        count = session.index.count(moment)
        mark = "->" if count == view.here.count else "  "
        share = texts.percent_text(count, view.here.total)
        view.screen.line(f"{mark} {number:>5}  {texts.moment_text(moment):>8}  {share}")
    if is_more:
        view.screen.line(f"(only the first {MOST_VISITS:,} are shown)", "dim")


COMMANDS = (
    PromptCommand(
        ("snapshot",), "[next|previous|N]", "go to the next or previous snapshot, or to one by number", snapshot
    ),
    PromptCommand(
        ("landmark",), "[next|previous]", "go to the next or previous exception of your code or mark", _landmark
    ),
    PromptCommand(("visits",), "[PLACE]", "list every moment at which a line ran", _visits, completes="places"),
)


def _is_in_own_code(session: Session, count: int) -> bool:
    top = session.look_at(count).top
    return top is None or not is_library(top.file)
