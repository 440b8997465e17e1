"""Where two recordings of one program begin to differ, as the logs tell it: for the view of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replaydbg.bisect.twins import Told, compare
from replaydbg.errors import NotComparable
from replaydbg.events.show import printable, show_call, show_outcome
from replaydbg.hunt.reading import open_twins


@dataclass(frozen=True, slots=True)
class FirstApart:
    """The first event of which the two tell something else."""

    events: tuple[int, int]
    """Its number in each of them."""
    text: str
    """What it is, in a line."""


def first_apart(one: Path, two: Path, began: tuple[int, int] = (0, 0)) -> FirstApart:
    """Compare two logs. Raises NotComparable if they are of two programs, or differ nowhere.

    What differs before the events `began`, after which the program's own lines come, is told if nothing does later: it
    is mostly that a file of the interpreter is another one.
    """
    with open_twins(one, two) as twins:
        sides = twins.good_side, twins.bad_side
        comparison = compare(*sides)
        found = [(each.good_event, each.bad_event) for each in comparison.inputs if each.told is Told.ANSWER]
        if comparison.first is not None:
            found.append((comparison.first.good_event, comparison.first.bad_event))
        if not found:
            raise NotComparable("The two runs were told the same and did the same, as far as their logs tell.")
        events = min([each for each in found if each[0] > began[0] and each[1] > began[1]] or found)
        told = [sides[at].events[events[at] - 1] for at in (0, 1) if 0 < events[at] <= len(sides[at].events)]
        texts = dict.fromkeys(f"{show_call(each)} {show_outcome(each)}" for each in told)
        return FirstApart(events, printable(" | ".join(texts)))
