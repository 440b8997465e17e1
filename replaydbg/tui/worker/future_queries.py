"""The query about the futures of the run: how those from here end, and the share that fails over the whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replaydbg.commands.view import View
from replaydbg.config import load_settings
from replaydbg.errors import NoFutures, UsageError
from replaydbg.events.show import printable
from replaydbg.futures.curve_text import no_return_lines, share_text
from replaydbg.futures.future import Future, FutureVerdict
from replaydbg.futures.grouping import FutureGroup
from replaydbg.futures.launcher import Futures, FutureWishes, run_futures
from replaydbg.futures.searches.curve import CurvePoint, CurveWishes, FutureCurve, find_curve
from replaydbg.render import texts
from replaydbg.replay.clock import Moment
from replaydbg.tui.view_model import AnswerList, Choice, Track

COUNT = 40
"""Futures from the current position."""
CURVE_COUNT = 16
"""Futures from each moment of the curve."""


def futures(view: View, show: Callable[[Track], object]) -> AnswerList:
    """Return how futures from here end, as groups with an example of each; `show` is called with the curve of the run.

    Only a run that failed has a curve.
    """
    if view.here.is_changed:
        raise UsageError("Futures are those of the recorded run, and this one was changed: `seek` returns to it.")
    found = _from_here(view)
    choices = [Choice(_group_text(each), recording=found.kept.get(each.example.seed)) for each in found.groups]
    if found.is_fixed:
        choices.append(Choice("Every future is the same: only one was run.", "dim"))
    curve = _curve(view, found.event + 1, show) if view.session.failure is not None else None
    if curve is not None:
        choices += [Choice(""), *_curve_choices(view, curve)]
    return AnswerList(_title(found), tuple(choices), "Enter opens an example, or goes to that moment of this run")


def _from_here(view: View) -> Futures:
    session, work = view.session, view.session.work
    done = 0

    def seen(_: Future) -> None:
        nonlocal done
        done += 1
        work.idle(work.total_lines * done // COUNT)

    work.begin("running futures")
    event = min(view.here.moment.event + 1, session.index.events)
    name = texts.recording_name(session)
    store = load_settings().store
    return run_futures(session.path, FutureWishes(max(event, 1), COUNT), name=name, store=store, seen=seen)


def _curve(view: View, event: int, show: Callable[[Track], object]) -> FutureCurve | None:
    """Return the curve from before this position on; None: nothing follows that could differ."""
    points: list[CurvePoint] = []
    work = view.session.work
    work.begin("finding from where on futures fail")

    def seen(point: CurvePoint) -> None:
        points.append(point)
        work.idle()
        show(_track(view, points))

    try:
        name = texts.recording_name(view.session)
        return find_curve(view.session.path, CurveWishes(event, CURVE_COUNT), name=name, seen=seen)
    except NoFutures:
        return None


def _track(view: View, points: list[CurvePoint]) -> Track:
    levels = sorted((_count(view, each), _part(each)) for each in points if each.share.decided)
    return Track("futures", "futures", (), levels=tuple(levels))


def _count(view: View, point: CurvePoint) -> int:
    return view.session.index.count(Moment(min(point.moment.event - 1, view.session.index.events), 1))


def _part(point: CurvePoint) -> float:
    return point.share.failed / point.share.decided


def _title(found: Futures) -> str:
    share = found.share
    if not share.decided:
        return f"{found.count:,} futures from here: none has a verdict"
    low, high = share.bounds
    part = f"{share.failed / share.decided:.0%} fail ({low:.0%} to {high:.0%})"
    return f"{found.count:,} futures after event {found.event:,}: {part}"


def _group_text(group: FutureGroup) -> str:
    word = "inconclusive: " if group.verdict is FutureVerdict.INCONCLUSIVE else ""
    return printable(f"{len(group.futures):5,}  {word}{group.ending}")


def _curve_choices(view: View, curve: FutureCurve) -> Iterator[Choice]:
    yield Choice(f"Share of {curve.count} futures that fail over this run", "bold")
    width = max(len(str(each.moment)) for each in curve.points)
    for point in curve.points:
        yield Choice(f"after {str(point.moment).ljust(width)}  {share_text(point)}", count=_count(view, point))
    yield from (Choice(line) for line in no_return_lines(curve))


QUESTIONS: dict[str, Callable[..., object]] = {each.__name__: each for each in (futures,)}
"""The queries by name."""
