"""The shares over the moments of a run as text: a bar for each moment, and from which one on all futures fail."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.events.records import SwitchReason
from replaydbg.events.show import printable, show_call
from replaydbg.futures.schedules.decisions import ThreadPlace
from replaydbg.futures.searches.curve import CurvePoint, FutureCurve, NoReturn
from replaydbg.futures.source_places import place_text, thread_name

_BAR = 30
"""Characters of a share of 100 %."""
_GIVES_WAY = {
    SwitchReason.LOCK: "waits for a lock, and",
    SwitchReason.CROSSING: "waits in a call, and",
    SwitchReason.PREEMPTED: "gives way, and",
    SwitchReason.ENDED: "ends, and",
}


def curve_lines(curve: FutureCurve) -> Iterator[str]:
    """Yield the shares and what they show."""
    yield (
        f"Share of {curve.count:,} futures of {printable(curve.name)} that fail, from {len(curve.points):,} of "
        f"{curve.moments:,} moments, in {curve.seconds:.1f} s"
    )
    width = max(len(str(each.moment)) for each in curve.points)
    for point in curve.points:
        yield f"  after {str(point.moment).ljust(width)}  {bar(point)}  {share_text(point)}"
    yield from no_return_lines(curve)


def bar(point: CurvePoint) -> str:
    """Return the share as a bar of a fixed length."""
    part = point.share.failed / point.share.decided if point.share.decided else 0.0
    filled = round(part * _BAR)
    return "█" * filled + "·" * (_BAR - filled)


def share_text(point: CurvePoint) -> str:
    """Return the share in digits, with its interval."""
    share = point.share
    if not share.decided:
        return "none has a verdict"
    low, high = share.bounds
    text = f"{share.failed / share.decided:4.0%}  ({low:.0%} to {high:.0%})"
    return f"{text}, {point.inconclusive:,} inconclusive" if point.inconclusive else text


def no_return_lines(curve: FutureCurve) -> Iterator[str]:
    """Yield from which moment on all futures fail, and what happened there."""
    found = curve.no_return
    if found is None:
        if curve.is_certain:
            yield "All futures fail from the first of these moments on: begin earlier with --at."
        elif curve.points[-1].share.failed:
            yield "Some futures do not fail even from the last of these moments on."
        else:
            yield "From the last of these moments on no future fails."
        return
    if found.step is None:
        yield f"No return between {found.before.moment} and {found.point.moment}: from there on all fail."
        return
    yield f"No return after {found.point.moment}, from which on all fail: {step_text(curve, found)}"
    if found.step.event is not None:
        site = found.step.event.site
        if site.line is not None:
            place = ThreadPlace(site.file or "", site.line, site.function or "")
            yield f"    {thread_name(curve.threads, found.step.lane)} at {place_text(curve.sources, place)}"
        return
    for lane, place in ((found.step.lane, found.left), (found.step.to, found.entered)):
        if place.line:
            yield f"    {thread_name(curve.threads, lane)} at {place_text(curve.sources, place)}"


def step_text(curve: FutureCurve, found: NoReturn) -> str:
    """Return what happened between the two moments."""
    step = found.step
    if step is None:
        return ""
    name = thread_name(curve.threads, step.lane)
    if step.event is not None:
        return f"{name} calls {printable(show_call(step.event))}"
    how = _GIVES_WAY[step.why] if step.why is not None else "stops, and"
    return f"{name} {how} {thread_name(curve.threads, step.to)} goes on"
