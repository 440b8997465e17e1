"""`python -m tests.fuzz`: mutations of recordings against the readers, replay and the debugger."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.fuzz import corpus, sanitized, space
from tests.fuzz.attempt import attempt
from tests.fuzz.outside import OUTSIDE, Tool, outside, plain_tool
from tests.fuzz.pool import Pool, Totals, shared_memory
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Orders
from tests.harness.table import as_text


def main(argv: Sequence[str] | None = None) -> int:
    """0: nothing was found; 1: something was; 2: it cannot run."""
    options = _parser().parse_args(argv)
    if options.repeat is not None:
        return repeat(options.repeat, with_asan=options.asan)
    with tempfile.TemporaryDirectory(prefix="replaydbg-fuzz-") as name:
        place = Path(name)
        try:
            totals = _run(options, place)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(f"tests.fuzz: {error}", file=sys.stderr)
            return 2
    _show(totals)
    if options.json is not None:
        options.json.write_text(json.dumps(_as_json(totals), indent=2) + "\n", encoding="utf-8")
    return int(bool(totals.found))


def _run(options: argparse.Namespace, place: Path) -> Totals:
    inputs, round_number = corpus.seeds(), 1
    if options.corpus is not None:
        options.corpus.mkdir(parents=True, exist_ok=True)
        inputs += corpus.load(options.corpus)
        round_number = _next_round(options.corpus)
    tools, recordings = _tools(options, place)
    end = time.monotonic() + options.seconds
    orders = [
        Orders(
            number=number,
            seed=f"{options.seed}.{round_number}",
            end=end,
            shared=shared_memory(place),
            inputs=inputs,
            recordings=recordings,
            tools=tools,
            corpus=options.corpus,
            outside_share=options.outside,
            only=tuple(options.only or ()),
        )
        for number in range(options.workers)
    ]
    return Pool(orders, options.findings).run()


def _tools(options: argparse.Namespace, place: Path) -> tuple[list[Tool], list[corpus.Input]]:
    """Return the ways to run a command, and recordings that these can replay."""
    if options.outside <= 0 or (options.only and not set(options.only) & set(OUTSIDE)):
        return [], []
    tools = [plain_tool(place)]
    if options.asan:
        tools.append(sanitized.build(place))
    recordings = []
    for number, tool in enumerate(tools):
        where = place / f"seeds-{number}"
        where.mkdir()
        recordings += corpus.recorded(tool.python, where, tool.env)
    return tools, recordings


def _next_round(directory: Path) -> int:
    """Count the runs over a corpus: each makes other mutations."""
    path = directory / "rounds"
    try:
        number = int(path.read_text(encoding="ascii")) + 1
    except (OSError, ValueError):
        number = 1
    path.write_text(f"{number}\n", encoding="ascii")
    return number


def repeat(path: Path, *, with_asan: bool = False) -> int:
    """Run a finding again; 1: it is still one."""
    facts = json.loads(path.read_text(encoding="utf-8"))
    data = (path.parent / facts["input"]).read_bytes()
    name = facts["target"].removesuffix("-asan")
    with tempfile.TemporaryDirectory(prefix="replaydbg-fuzz-") as place:
        os.environ["XDG_DATA_HOME"] = str(space.scratch(os.getpid()))
        try:
            if name in OUTSIDE:
                is_sanitized = with_asan or facts["target"].endswith("-asan")
                tool = sanitized.build(Path(place)) if is_sanitized else plain_tool(Path(place))
                ran = outside(name, tool, data, _rng(facts["seed"]))
            else:
                _, target, _ = TARGETS[name]
                ran = attempt(name, target, data, facts["seed"])
        finally:
            space.clear()
    if ran.bad is None:
        print(f"nothing found: {ran.signature}")
        return 0
    print(f"{ran.bad.key}\n{ran.bad.text}")
    return 1


def _rng(seed: str) -> Random:
    return Random(seed)


def _show(totals: Totals) -> None:
    print(f"Python {platform.python_version()}, {totals.elapsed:.0f} s")
    rows = [
        [name, f"{number:,}", f"{number / max(totals.seconds.get(name, 0), 1e-9):,.0f}"]
        for name, number in sorted(totals.counts.items())
    ]
    rows.append(["all", f"{totals.mutations:,}", f"{totals.mutations / max(totals.elapsed, 1e-9):,.0f} (of the run)"])
    print(as_text(["target", "mutations", "a second of its time"], rows))
    print(f"{totals.kept:,} inputs kept, {len(totals.found)} findings")
    for key, path in sorted(totals.found.items()):
        print(f"  {key}\n    python -m tests.fuzz --repeat {path}")


def _as_json(totals: Totals) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "seconds": totals.elapsed,
        "mutations": totals.mutations,
        "counts": totals.counts,
        "target_seconds": totals.seconds,
        "kept": totals.kept,
        "findings": {key: str(path) for key, path in totals.found.items()},
    }


def _parser() -> argparse.ArgumentParser:
    names = ", ".join((*TARGETS, *OUTSIDE))
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", metavar="N", type=float, default=300.0, help="how long it runs (default: 300)")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the mutations (default: 1)")
    workers = int(os.environ.get("REPLAYDBG_TEST_WORKERS", "2"))
    parser.add_argument("--workers", metavar="N", type=int, default=workers, help=f"processes (default: {workers})")
    parser.add_argument("--corpus", metavar="DIR", type=Path, help="keep interesting inputs there, and begin with them")
    parser.add_argument(
        "--findings", metavar="DIR", type=Path, default=Path("test-results/fuzz"), help="(default: test-results/fuzz)"
    )
    parser.add_argument("--only", metavar="TARGET", action="append", help=f"one target; can be repeated: {names}")
    parser.add_argument(
        "--outside", metavar="SHARE", type=float, default=0.4, help="of the time, for replay and debug (default: 0.4)"
    )
    parser.add_argument("--asan", action="store_true", help="replay and debug also on a core with AddressSanitizer")
    parser.add_argument("--repeat", metavar="FILE", type=Path, help="run one finding again")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
