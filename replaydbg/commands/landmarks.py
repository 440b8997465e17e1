"""Commands that go from one notable moment to the next: snapshots, exceptions, marks, visits of a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from replaydbg.commands.motion import go_to
from replaydbg.commands.places import parse_place
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.debugger.exception_types import is_by_own_code
from replaydbg.debugger.session_results import Moment
from replaydbg.errors import UsageError
from replaydbg.render import texts

MOST_VISITS = 1000
"""The most visits of a line that are listed."""

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
    # Libraries mostly handle their own exceptions.
    found = (each for each in session.index.raised if is_by_own_code(each, view.own_code))
    raised = [each.count for each in found if each.type not in texts.SILENT]
    marks = [session.index.count(each) for each in session.marks.moments.values()]
    counts = [*(each for each in raised if each >= session.first_own), *marks]
    _go(view, counts, is_on=is_on, what="exception of your code or mark")


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
