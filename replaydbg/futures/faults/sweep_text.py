"""The result of a fault sweep as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import clause, quoted
from replaydbg.events.show import printable
from replaydbg.futures.faults.sweep import FaultTrial, Sweep
from replaydbg.futures.future import FutureVerdict
from replaydbg.futures.futures_text import without_directory

MOST_ROWS = 100
"""Rows of the table; the JSON has all."""
_LONGEST = 90
_HEAD = ("call", "k", "fault", "line", "outcome")


@dataclass(frozen=True, slots=True)
class SweepReport:
    """The result, with the names of what was kept."""

    found: Sweep
    names: Mapping[Path, str]
    """The names in commands."""


def sweep_lines(report: SweepReport) -> Iterator[str]:
    """Yield what came of all, the table, and the command for the next step."""
    found = report.found
    yield _first_line(found)
    yield f"Without a fault: {outcome_of(found.plain.verdict, found.plain.ending)}"
    rows = [_row(each, report) for each in found.trials[:MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    for row in (_HEAD, *rows):
        cells = [
            cell.rjust(width) if place == 1 else cell.ljust(width) for place, (cell, width) in _placed(row, widths)
        ]
        yield f"  {'  '.join(cells)}".rstrip()
    if len(found.trials) > MOST_ROWS:
        yield f"  and {len(found.trials) - MOST_ROWS:,} more rows (--json lists all)"
    if found.is_cut:
        yield f"Only the first {len(found.trials):,} were tried: -n allows more."
    if found.never:
        calls = ", ".join(f"{name} ({count:,})" for name, count in found.calls)
        yield f"Never called after the moment: {', '.join(found.never)}. It calls: {calls}."
    if found.unkept:
        yield f"Recordings are missing: {clause(found.unkept)}."
    example = next((each for each in found.trials if each.kept and each.future.verdict is FutureVerdict.FAILED), None)
    if example is not None and example.kept is not None:
        yield f"Open one: replaydbg debug {quoted(report.names[example.kept])}"


def outcome_of(verdict: FutureVerdict, ending: str) -> str:
    """Return a verdict and an ending in a few words."""
    text = without_directory(printable(ending))
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return f"{verdict.value}: {text}" if verdict is not FutureVerdict.PASSED else "passed"


def _placed(row: tuple[str, ...], widths: list[int]) -> Iterator[tuple[int, tuple[str, int]]]:
    return iter(enumerate(zip(row, widths, strict=True)))


def _row(trial: FaultTrial, report: SweepReport) -> tuple[str, ...]:
    def cell(values: list[str]) -> str:
        return ", then ".join(values)

    kept = f" ({report.names[trial.kept]})" if trial.kept is not None else ""
    return (
        cell([each.gate.partition(".")[2] for each in trial.met]),
        cell([str(each.number) for each in trial.faults]),
        cell([each.fault for each in trial.faults]),
        printable(cell([each.line for each in trial.met])),
        outcome_of(trial.future.verdict, trial.future.ending) + kept,
    )


def _first_line(found: Sweep) -> str:
    counts = {verdict: found.count(verdict) for verdict in FutureVerdict}
    futures = "1 future" if len(found.trials) == 1 else f"{len(found.trials):,} futures"
    parts = [f"{counts[verdict]:,} {verdict.value}" for verdict in (FutureVerdict.FAILED, FutureVerdict.PASSED)]
    if counts[FutureVerdict.INCONCLUSIVE]:
        parts.append(f"{counts[FutureVerdict.INCONCLUSIVE]:,} inconclusive")
    name, event = printable(found.name), found.event
    return f"{futures} of {name} with faults after event {event:,}: {', '.join(parts)}, in {found.seconds:.1f} s"
