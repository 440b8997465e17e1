"""`python -m tests.bench`: measure, print a table, write JSON; asserts no times, but that replays are equal."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from replaydbg.errors import ReplaydbgError
from tests.bench import (
    bisections,
    catalog,
    conditions,
    cuts,
    durable,
    editor,
    futures,
    heaps,
    keys,
    live_cuts,
    matching,
    moment_diffs,
    plugin,
    plugin_suites,
    processes,
    resumed,
    takeover,
)
from tests.bench.cost_page import PICTURES, merged, write_page
from tests.bench.goals import goals_text
from tests.bench.growth import SIZES, grow, sizes_up_to
from tests.bench.journeys import JOURNEYS
from tests.bench.measure import Measurement, Modes, measure
from tests.bench.messages import message_parts
from tests.bench.plots import draw
from tests.bench.report import as_json, as_table, startup_of
from tests.bench.steps import measure_steps
from tests.bench.travel import Extent, TravelFailed, Travelled, travel
from tests.bench.travel_report import travel_json, travel_parts
from tests.bench.workloads import EMPTY, WORKLOADS


class Costs(Protocol):
    """A measured cost."""

    def as_text(self) -> str:
        """Return it as lines for people."""

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""


_FAILURES = (
    heaps.HeapFailed,
    bisections.BisectFailed,
    conditions.ConditionsFailed,
    keys.KeysFailed,
    editor.EditorFailed,
    futures.FuturesFailed,
    plugin.PluginFailed,
    moment_diffs.DiffFailed,
    matching.MatchingFailed,
    catalog.CatalogFailed,
    processes.ProcessesFailed,
    cuts.CutsFailed,
    live_cuts.LiveCutsFailed,
    durable.DurableFailed,
    takeover.TakeoverFailed,
    resumed.ResumeFailed,
)
# The share of a journey that a quick run measures.
_QUICK = 0.02


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if everything was measured, 1 if something failed or did not replay equal."""
    options = _parser().parse_args(argv)
    if options.table or options.plot or options.grow:
        return _without_bench(options)
    wanted = [each for each in WORKLOADS if not options.only or each.name in options.only]
    modes = Modes.PLAIN if options.plain else Modes.ALL
    # The empty program is always measured: its start-up is subtracted from the others.
    measurements: list[Measurement] = []
    for workload in (EMPTY, *(each for each in wanted if each is not EMPTY)):
        print(f"measuring {workload.name} ...", file=sys.stderr, flush=True)
        measurements.append(measure(workload, runs=options.runs, modes=modes, timeout=options.timeout))
    step_costs = None
    if not options.plain and (not options.only or "lines" in options.only):
        print("measuring lines ...", file=sys.stderr, flush=True)
        step_costs = measure_steps(options.runs)
    travelled, failures = _travels(options)
    others = _others(options, failures)
    print(as_table(measurements, measurements[0]))
    for part in message_parts(measurements, startup_of(measurements[0])):
        print(f"\n{part}")
    if step_costs is not None:
        print(step_costs.as_text())
    for part in (*(each.as_text() for each in others.values()), *travel_parts(travelled), *failures):
        print(f"\n{part}")
    facts = as_json(measurements, measurements[0])
    facts["steps"] = asdict(step_costs) if step_costs is not None else None
    facts |= {name: each.as_json() for name, each in others.items()}
    facts["travel"] = [travel_json(each) for each in travelled]
    if not options.plain:
        print(f"\n{goals_text(facts)}")
    if options.json is not None:
        options.json.write_text(json.dumps(facts, indent=2) + "\n")
        print(f"every figure: {options.json}", file=sys.stderr)
    return int(bool(failures) or any(each.failure and each.is_possible for each in measurements))


def _without_bench(options: argparse.Namespace) -> int:
    """Measure growth, or write documents from existing figures."""
    if options.grow:
        if unknown := set(options.only or ()) - set(SIZES):
            print(f"--grow --only takes {', '.join(SIZES)} (got {', '.join(sorted(unknown))})", file=sys.stderr)
            return 2
        kinds = {kind: sizes_up_to(kind, options.grow_limit) for kind in options.only or SIZES}
        found = grow(kinds, options.timeout, lambda text: print(text, file=sys.stderr, flush=True))
        options.grow.write_text(json.dumps(found, indent=2) + "\n")
    if options.plot:
        for path in draw(merged(options.plot)[1], PICTURES):
            print(path)
    if options.table:
        write_page(options.table)
    return 0


def _others(options: argparse.Namespace, failures: list[str]) -> dict[str, Costs]:
    """Return measurements with a row of their own, by name; `failures` receives the reasons for missing ones."""
    scale = _QUICK if options.quick else 1.0
    measures: dict[str, Callable[[], Costs]] = {
        heaps.NAME: lambda: heaps.measure_heap(options.runs, options.timeout),
        bisections.NAME: lambda: bisections.measure_bisections(options.timeout),
        conditions.NAME: lambda: conditions.measure_conditions(options.runs, options.timeout),
        keys.NAME: lambda: keys.measure_keys(options.timeout, scale=scale),
        editor.NAME: lambda: editor.measure_editor(options.runs, options.timeout),
        futures.NAME: lambda: futures.measure_futures(options.runs, options.timeout),
        plugin.NAME: lambda: plugin.measure_plugin(options.runs, options.timeout),
        plugin_suites.NAME: lambda: plugin_suites.measure_suites(options.runs, options.timeout),
        moment_diffs.NAME: lambda: moment_diffs.measure_diff(options.runs, options.timeout),
        matching.NAME: lambda: matching.measure_matching(options.runs, options.timeout),
        catalog.NAME: lambda: catalog.measure_catalog(options.runs, options.timeout),
        processes.NAME: lambda: processes.measure_processes(options.runs, options.timeout),
        cuts.NAME: lambda: cuts.measure_cuts(options.runs, options.timeout),
        live_cuts.NAME: lambda: live_cuts.measure_live_cuts(options.runs, options.timeout),
        durable.NAME: lambda: durable.measure_durable(options.runs, options.timeout),
        takeover.NAME: lambda: takeover.measure_takeover(options.runs, options.timeout),
        resumed.NAME: lambda: resumed.measure_resume(options.runs, options.timeout),
    }
    found: dict[str, Costs] = {}
    for name, measure_it in measures.items():
        if options.plain or (options.only and name not in options.only):
            continue
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        try:
            found[name] = measure_it()
        except _FAILURES as failure:
            failures.append(f"{name} FAILED: {failure}")
    return found


def _travels(options: argparse.Namespace) -> tuple[list[Travelled], list[str]]:
    """Return the journeys that were measured, and why the others were not."""
    travelled: list[Travelled] = []
    failures: list[str] = []
    # A minute of computation takes several under the step clock.
    extent = Extent(options.places, timeout=3 * options.timeout)
    if options.quick:
        extent = replace(extent, places=max(4, options.places // 10), scale=_QUICK, patience=5.0)
    for journey in JOURNEYS:
        if options.plain or (options.only and journey.name not in options.only):
            continue
        print(f"measuring {journey.name} ...", file=sys.stderr, flush=True)
        try:
            travelled.append(travel(journey, extent))
        except (TravelFailed, ReplaydbgError) as failure:
            failures.append(f"{journey.name} FAILED: {failure}")
    return travelled, failures


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(
        [
            *(each.name for each in WORKLOADS),
            "lines",
            heaps.NAME,
            bisections.NAME,
            conditions.NAME,
            keys.NAME,
            editor.NAME,
            futures.NAME,
            plugin.NAME,
            plugin_suites.NAME,
            moment_diffs.NAME,
            matching.NAME,
            processes.NAME,
            cuts.NAME,
            live_cuts.NAME,
            durable.NAME,
            takeover.NAME,
            resumed.NAME,
            *(each.name for each in JOURNEYS),
        ]
    )
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only", metavar="NAME", action="append", help=f"one workload or journey; can be repeated: {names}"
    )
    parser.add_argument("--runs", metavar="N", type=int, default=5, help="rounds of each workload (default: 5)")
    parser.add_argument("--json", metavar="FILE", type=Path, default=Path("bench.json"), help="default: bench.json")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=600.0, help="for each command")
    parser.add_argument(
        "--places", metavar="N", type=int, default=200, help="random places of a journey (default: 200)"
    )
    parser.add_argument("--quick", action="store_true", help="journeys: a fiftieth of the lines, a tenth of the places")
    parser.add_argument("--plain", action="store_true", help="run the workloads plain alone, to check them")
    parser.add_argument(
        "--table",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="measure nothing: write docs/explanation/cost.md from the files of --json, for any versions "
        "of Python, and of --grow",
    )
    parser.add_argument(
        "--grow",
        metavar="FILE",
        type=Path,
        help=f"measure how costs grow, and write the figures to FILE; --only takes: {', '.join(SIZES)}",
    )
    parser.add_argument("--grow-limit", metavar="N", type=int, help="with --grow: measure no size above N")
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, nargs="+", help="draw the figures of --grow as plots in docs/pictures"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
