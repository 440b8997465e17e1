"""The verdict on edited code as text."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.events.show import printable
from replaydbg.replay.edited_code import CodeVerdict

MOST_SHOWN = 20
"""Number of deviations that are listed for people; `--json` lists all."""


def verdict_lines(verdict: CodeVerdict, *, with_deviations: bool) -> Iterator[str]:
    """Yield the verdict, printable, and the first deviations of the replay."""
    yield from map(printable, verdict.sentence.split("\n"))
    if with_deviations:
        yield from _deviation_lines(verdict)


def _deviation_lines(verdict: CodeVerdict) -> Iterator[str]:
    counts = verdict.result.liberty_counts
    for liberty in verdict.result.liberties[:MOST_SHOWN]:
        yield f"  {printable(str(liberty))}"
    more = sum(counts.values()) - MOST_SHOWN
    if more > 0:
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        yield f"  ... and {more} more: {kinds} in all (--json has them)"
