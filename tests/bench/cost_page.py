"""Write docs/explanation/cost.md from the figures of the bench."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.cost_reasons import GROWTH, REASONS
from tests.bench.goals import Facts, Goal, Part, figure, goals
from tests.bench.plots import PLOTS
from tests.harness.table import as_markdown, with_unit

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "cost.md"
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

_INTRODUCTION = """\
# Cost, and how it grows

The cost of recording, replaying and debugging today, compared with the targets of the project; figures in bold miss
their target. A ratio is the CPU time of a whole command, children included, divided by that of the plain program: the
median of paired runs. `python -m tests.bench --table FILE...` writes this page from the files of
`python -m tests.bench --json FILE`; see [how to measure](../contributing/run-bench.md).
"""


def merged(files: Iterable[Path]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the facts by Python version (`3.11`), in order, and the growth; later files replace rows."""
    versions: dict[str, dict[str, Any]] = {}
    growth: dict[str, Any] = {}
    for file in files:
        facts = json.loads(file.read_text())
        if "growth" in facts:
            growth |= facts["growth"]
            continue
        version = ".".join(facts["machine"]["python"].split(".")[:2])
        known = versions.setdefault(version, {})
        for key, value in facts.items():
            if key == "workloads":
                known[key] = _by_name(known.get(key, ()), value, lambda each: each["name"])
            elif key == "travel":
                known[key] = _by_name(known.get(key, ()), value, lambda each: each["journey"]["name"])
            elif value is not None:
                known[key] = value
    return dict(sorted(versions.items())), growth


def _by_name(before: Iterable[Any], after: Iterable[Any], name: Any) -> list[Any]:
    return list({name(each): each for each in (*before, *after)}.values())


def write_page(files: Sequence[Path], page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(page_text(*merged(files)), encoding="utf-8")


def page_text(versions: Mapping[str, Facts], growth: Mapping[str, Any]) -> str:
    """Return the page in Markdown."""
    rows = {version: goals(facts) for version, facts in versions.items()}
    parts = [_INTRODUCTION.rstrip(), _machine(versions), _table(rows), *_misses(rows)]
    if growth:
        parts += ["## How cost grows", _wrapped(GROWTH["introduction"]), *_growth(growth)]
    return "\n\n".join(parts) + "\n"


_AGE = (
    "The figures of 3.13 are of an older version, which did not search recordings for secrets; by now its start-up and "
    "its sealing cost as much more as those of 3.11."
)


def _machine(versions: Mapping[str, Facts]) -> str:
    names = " and ".join(facts["machine"]["python"] for facts in versions.values())
    cpus = {str(facts["machine"]["cpus"]) for facts in versions.values()}
    machine = f"Measured with Python {names} on Linux, {' or '.join(sorted(cpus))} CPUs"
    return _wrapped(f"{machine}. Other work on the machine makes wall times longer, CPU times less so. {_AGE}")


def _table(rows: Mapping[str, Sequence[Goal]]) -> str:
    heading = ["row", "figure", *(f"plain, {each}" for each in rows), *rows, "target"]
    lines = []
    for goals_of_row in zip(*rows.values(), strict=True):
        # Every version has the same figures, if it has any.
        parts = max((each.parts for each in goals_of_row), key=len)
        if not parts:
            reasons = [each.missing for each in goals_of_row]
            lines.append([goals_of_row[0].name, "-", *("-" for _ in goals_of_row), *reasons, "-"])
        for at, part in enumerate(parts):
            cells = [_cell(each, at) for each in goals_of_row]
            plain = ["-" if each.plain is None or at else f"{each.plain:.2f} s" for each in goals_of_row]
            target = _target([each.parts[at] for each in goals_of_row if at < len(each.parts)])
            lines.append([goals_of_row[0].name if not at else "", part.name, *plain, *cells, target])
    return as_markdown(heading, lines)


def _cell(goal: Goal, at: int) -> str:
    if at >= len(goal.parts):
        return goal.missing or "-"
    part = goal.parts[at]
    text = figure(part.value, part.unit)
    return f"**{text}**" if part.result == "missed" else text


def _target(parts: Sequence[Part]) -> str:
    """Return the target; one for each version where they differ."""
    return ", ".join(dict.fromkeys(figure(each.target, each.unit) for each in parts))


def _misses(rows: Mapping[str, Sequence[Goal]]) -> list[str]:
    lines = []
    for goals_of_row in zip(*rows.values(), strict=True):
        if any(part.result == "missed" for each in goals_of_row for part in each.parts):
            name = goals_of_row[0].name
            lines.append(_wrapped(f"- *{name}*: {REASONS.get(name, 'no explanation yet.')}", "  "))
    return ["## Why targets are missed", "\n".join(lines)] if lines else []


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _growth(growth: Mapping[str, Any]) -> list[str]:
    parts = []
    for kind in ("events", "bytes", "lines", "threads", "objects"):
        if kind not in growth:
            continue
        points, stopped = growth[kind]["points"], growth[kind]["stopped"]
        parts += [f"### {GROWTH[f'{kind} heading']}", _wrapped(GROWTH[kind]), _growth_table(points)]
        if stopped:
            parts.append(f"It stopped at {stopped}.")
        drawn = [plot for plot in PLOTS if plot.kind == kind and (PICTURES / plot.file).exists()]
        parts += [f"![{plot.title}](../pictures/{plot.file})" for plot in drawn]
    return parts


def _growth_table(points: Sequence[Mapping[str, Any]]) -> str:
    cpu, peak = (list(dict.fromkeys(name for point in points for name in point[key])) for key in ("cpu", "peak"))
    has_size = any(point["stored"] for point in points)
    heading = ["size", *(f"{name}, s" for name in cpu), *(f"memory, {name}" for name in peak)]
    lines = [
        [
            f"{point['size']:,}",
            *(_of(point["cpu"], name, lambda value: f"{value:.2f}") for name in cpu),
            *(_of(point["peak"], name, with_unit) for name in peak),
            *([with_unit(point["stored"])] if has_size else []),
        ]
        for point in points
    ]
    return as_markdown(heading + (["recording"] if has_size else []), lines)


def _of(figures: Mapping[str, float], name: str, shown: Any) -> str:
    return shown(figures[name]) if name in figures else "-"
