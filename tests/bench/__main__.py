"""`python -m tests.bench`: measures, prints a table, writes JSON; no time is asserted, a replay that differs is."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bench.measure import Measurement, Modes, measure
from tests.bench.messages import message_parts
from tests.bench.report import as_json, as_table, startup_of
from tests.bench.steps import measure_steps
from tests.bench.workloads import EMPTY, WORKLOADS


def main(argv: Sequence[str] | None = None) -> int:
    """0: everything was measured; 1: something failed or did not replay equal."""
    options = _parser().parse_args(argv)
    wanted = [each for each in WORKLOADS if not options.only or each.name in options.only]
    modes = Modes.PLAIN if options.plain else Modes.ALL
    # The empty program is always measured: its start-up is taken off the others.
    measurements: list[Measurement] = []
    for workload in (EMPTY, *(each for each in wanted if each is not EMPTY)):
        print(f"measuring {workload.name} ...", file=sys.stderr, flush=True)
        measurements.append(measure(workload, runs=options.runs, modes=modes, timeout=options.timeout))
    step_costs = None
    if not options.plain and (not options.only or "lines" in options.only):
        print("measuring lines ...", file=sys.stderr, flush=True)
        step_costs = measure_steps(options.runs)
    print(as_table(measurements, measurements[0]))
    for part in message_parts(measurements, startup_of(measurements[0])):
        print(f"\n{part}")
    if step_costs is not None:
        print(step_costs.as_text())
    if options.json is not None:
        facts = as_json(measurements, measurements[0])
        facts["steps"] = asdict(step_costs) if step_costs is not None else None
        options.json.write_text(json.dumps(facts, indent=2) + "\n")
        print(f"every figure: {options.json}", file=sys.stderr)
    return int(any(each.failure for each in measurements))


def _parser() -> argparse.ArgumentParser:
    names = ", ".join([*(each.name for each in WORKLOADS), "lines"])
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help=f"one workload; can be repeated: {names}")
    parser.add_argument("--runs", metavar="N", type=int, default=5, help="rounds of each workload (default: 5)")
    parser.add_argument("--json", metavar="FILE", type=Path, default=Path("bench.json"), help="default: bench.json")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=600.0, help="for each command")
    parser.add_argument("--plain", action="store_true", help="run the workloads plain alone, to check them")
    return parser


if __name__ == "__main__":
    sys.exit(main())
