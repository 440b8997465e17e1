"""`replaydbg doctor --trace`: record and replay a program, each with a trace of every tick, and compare the traces."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replaydbg.config import Settings, load_settings, parse_size
from replaydbg.errors import UsageError

if TYPE_CHECKING:
    from replaydbg.replay import ReplayResult
    from replaydbg.trace.compare import InsideBoth, TraceComparison, TraceDifference, TraceSide
    from replaydbg.trace.trace_files import TraceFiles
    from replaydbg.trace.trace_orders import TraceOrders

LIMIT = "1G"
"""Default maximum size of a tick trace (see `--trace-limit`): some 300 million ticks."""

GATES, FUNCTIONS = 12, 3
"""Number of gates with Python inside that are shown, and of functions for each: the first ones call the others."""

RECORDING_ONLY, REPLAY_ONLY = "in the recording only", "in the replay only"
UNEQUAL, BOTH = "in both, but not as often", "in both"
_ALONE = (
    "only one of the two runs did this work. If it fills a cache, counts something or imports a module, "
    "the control flow can differ later"
)
MEANINGS = {
    RECORDING_ONLY: _ALONE,
    REPLAY_ONLY: _ALONE,
    UNEQUAL: _ALONE,
    BOTH: "both runs did this work. Its own calls to the outside are not recorded",
}
"""What Python code inside a crossing means for a user."""


@dataclass(frozen=True, slots=True)
class Traced:
    """The result of one recording and one replay."""

    compared: TraceComparison
    """The comparison of the tick traces."""
    insides: tuple[InsideBoth, ...]
    """Python code inside crossings."""
    result: ReplayResult
    """How the replay ended."""
    name: str
    """The recording's name for commands; the recording is kept if something differs."""
    gates: Sequence[str]
    """The names of the gates; gate number n is at index n - 1."""

    @property
    def difference(self) -> TraceDifference | None:
        """The first difference that matters, if there is one."""
        difference = self.compared.difference
        if difference is None or not self.result.ended_early:
            return difference
        # The recording ends before the program did: so does the replay, in the middle of the program.
        return None if _is_end(difference.replayed) else difference

    @property
    def is_equal(self) -> bool:
        """Whether the replay matched the recording as far as the two were compared."""
        return self.difference is None and self.result.divergence is None

    def gate(self, number: int) -> str:
        """Return the name of a gate."""
        return self.gates[number - 1] if 0 < number <= len(self.gates) else "an unknown call"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("options for --trace")
    group.add_argument(
        "--trace",
        action="store_true",
        help="record a program, replay it, and compare every tick of both",
    )
    group.add_argument("--trace-limit", metavar="SIZE", help=f"compare at most SIZE of each trace (default: {LIMIT})")
    group.add_argument(
        "--replays", type=int, metavar="N", help="replay up to N times, until a replay differs (default: 1)"
    )
    group.add_argument("--chaos", metavar="SEED", help="as for record")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help="keep the recording in FILE")


def run(args: argparse.Namespace) -> int:
    """Record, replay and compare; return 0 if all is equal, 1 if not."""
    # Imported here: the usual doctor does not need it.
    from replaydbg.cli.output import print_json

    limit = _limit(args.trace_limit)
    replays = 1 if args.replays is None else args.replays
    if replays < 1:
        raise UsageError(f"--replays must be at least 1 (got {replays}).")
    settings = load_settings({"chaos": args.chaos})
    with tempfile.TemporaryDirectory(prefix="replaydbg-trace-") as directory:
        found = _trace(args, settings, Path(directory), limit, replays)
    if args.json:
        print_json(_facts(found))
    else:
        print("\n".join(_words(found)))
    return 0 if found.is_equal else 1


def _limit(text: str | None) -> int:
    try:
        return parse_size(text or LIMIT)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--trace-limit cannot be {text!r}: {error}.") from error


def _trace(args: argparse.Namespace, settings: Settings, directory: Path, limit: int, replays: int) -> Traced:
    from replaydbg.record import record
    from replaydbg.store.directory import Store
    from replaydbg.trace.trace_files import TraceFiles

    orders = _orders(directory / "recorded", limit)
    # Data goes to stdout alone.
    recorded = record(
        args.program, output=args.output, settings=settings, stdout=2 if args.json else None, trace=orders
    )
    if not args.json:
        print(f"replaydbg: recorded {recorded.events:,} events; replaying", file=sys.stderr)
    one = TraceFiles(orders.directory)
    for number in range(replays):
        again = _orders(directory / f"replayed-{number % 2}", limit)
        found = _replay(recorded.path, Store(settings.store).name_of(recorded.path), one, again)
        if not found.is_equal:
            return found
    if args.output is None:
        recorded.path.unlink()
    return found


def _orders(directory: Path, limit: int) -> TraceOrders:
    from replaydbg.trace.trace_orders import TraceOrders

    directory.mkdir(exist_ok=True)
    return TraceOrders(directory, limit)


def _replay(path: Path, name: str, recorded: TraceFiles, orders: TraceOrders) -> Traced:
    from replaydbg.log.reader import open_recording
    from replaydbg.replay import replay
    from replaydbg.trace.compare import compare, insides
    from replaydbg.trace.trace_files import TraceFiles

    with Path(os.devnull).open("wb") as null:
        result = replay(path, name=name, stdout=null.fileno(), stderr=null.fileno(), trace=orders)
    with open_recording(path) as recording:
        gates = [gate.name for gate in recording.header.gates]
    replayed = TraceFiles(orders.directory)
    return Traced(compare(recorded, replayed), insides(recorded, replayed), result, name, gates)


# ---- as text ----


def _words(found: Traced) -> list[str]:
    compared = found.compared
    amount = f"{compared.ticks:,} ticks, {compared.events:,} events"
    amount += f" in {compared.lanes} thread{'s' if compared.lanes != 1 else ''}" if compared.lanes else ""
    lines: list[str] = []
    if found.result.divergence is not None:
        lines += [str(found.result.divergence), ""]
    if found.difference is not None:
        lines += _difference(found, found.difference)
    elif found.result.divergence is None:
        lines.append(f"equal: {amount}{_how_far(found)}")
    else:
        lines.append(f"All earlier ticks are equal: {amount}{_how_far(found)}")
    if found.result.drift:
        lines.append(f"The garbage collector has differed in the replay since event {found.result.drift}.")
    if not found.is_equal:
        lines += ["", f"The recording is kept: {found.name}"]
    return [*lines, "", *_lint(found)]


def _how_far(found: Traced) -> str:
    from replaydbg.trace.trace_files import TraceEnd

    if found.result.ended_early:
        return f", up to where the recording ends: {found.result.ended_early}"
    ending = found.compared.ending
    return "" if ending is TraceEnd.WHOLE else f"; the rest was not compared: {ending.value}"


def _difference(found: Traced, difference: TraceDifference) -> list[str]:
    after = f"event {difference.event:,}" if difference.event else "the start"
    after += f" ({found.gate(difference.gate)})" if difference.gate else ""
    lines = [f"The first difference is tick {difference.tick:,}, after {after}."]
    width = len("recorded")
    lines.append(f"  {'recorded':<{width}}  {_side(found, difference.recorded)}")
    lines.append(f"  {'replayed':<{width}}  {_side(found, difference.replayed)}")
    if difference.common:
        lines += ["", "Both runs before it:"]
        lines += [f"  {_side(found, side)}" for side in difference.common]
    return lines


def _side(found: Traced, side: TraceSide) -> str:
    from replaydbg.events.show import printable
    from replaydbg.trace.trace_files import Kind

    item = side.item
    if item is None:
        return "(nothing: the run was killed)"
    if item.kind is Kind.END:
        return "the end of the run"
    if item.kind is Kind.EVENT:
        return f"thread {item.lane}: an event, {found.gate(item.number)}"
    return f"thread {item.lane}: {printable(side.file)}:{side.line} in {printable(side.function)}"


def _is_end(side: TraceSide) -> bool:
    from replaydbg.trace.trace_files import Kind

    return side.item is None or side.item.kind is Kind.END


def _lint(found: Traced) -> list[str]:
    if not found.insides:
        return ["No Python function was called inside a recorded call."]
    groups: dict[tuple[str, str], list[InsideBoth]] = {}
    for each in found.insides:
        gate = found.gate(each.key.gate) if each.key.gate else "replaydbg's own code"
        groups.setdefault((gate, _mode(each)), []).append(each)
    lines = ["Python functions called inside recorded calls, where nothing is recorded or counted:"]
    for (gate, mode), functions in [*groups.items()][:GATES]:
        lines.append(f"  inside {gate}, {mode}, first after event {functions[0].first_event:,}:")
        lines += [f"    {_function(each)}" for each in functions[:FUNCTIONS]]
        if len(functions) > FUNCTIONS:
            lines.append(f"    and {len(functions) - FUNCTIONS} more (--json has all)")
    if len(groups) > GATES:
        lines.append(f"  and inside {len(groups) - GATES} more (--json has all)")
    modes = {mode for _, mode in groups}
    meanings = [f"  {mode}: {text}." for mode, text in MEANINGS.items() if mode in modes]
    return [*lines, "", "Meaning:", *meanings]


def _function(each: InsideBoth) -> str:
    from replaydbg.events.show import printable

    key = each.key
    words = f"{printable(key.file)}:{key.line} in {printable(key.function)}, "
    if each.recorded == each.replayed or not each.recorded or not each.replayed:
        return words + _times(max(each.recorded, each.replayed))
    return words + f"{_times(each.recorded)} in the recording and {_times(each.replayed)} in the replay"


def _mode(each: InsideBoth) -> str:
    if each.recorded == each.replayed:
        return BOTH
    if not each.replayed:
        return RECORDING_ONLY
    return REPLAY_ONLY if not each.recorded else UNEQUAL


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


# ---- as data ----


def _facts(found: Traced) -> dict[str, Any]:
    compared, difference = found.compared, found.difference
    return {
        "equal": found.is_equal,
        "recording": found.name if not found.is_equal else None,
        "ticks": compared.ticks,
        "events": compared.events,
        "lanes": compared.lanes or None,
        "ending": compared.ending.name.lower(),
        "ended_early": found.result.ended_early,
        "drift": found.result.drift or None,
        "divergence": found.result.divergence.as_dict() if found.result.divergence is not None else None,
        "difference": None
        if difference is None
        else {
            "tick": difference.tick,
            "event": difference.event,
            "recorded": _side_facts(found, difference.recorded),
            "replayed": _side_facts(found, difference.replayed),
            "common": [_side_facts(found, side) for side in difference.common],
        },
        "inside": [
            {
                "gate": found.gate(each.key.gate) if each.key.gate else None,
                "file": each.key.file,
                "line": each.key.line,
                "function": each.key.function,
                "recorded": each.recorded,
                "replayed": each.replayed,
                "first_event": each.first_event,
            }
            for each in found.insides
        ],
    }


def _side_facts(found: Traced, side: TraceSide) -> dict[str, Any]:
    from replaydbg.trace.trace_files import Kind

    item = side.item
    if item is None or item.kind is Kind.END:
        return {"kind": "end"}
    if item.kind is Kind.EVENT:
        return {"kind": "event", "lane": item.lane, "gate": found.gate(item.number)}
    return {"kind": "tick", "lane": item.lane, "file": side.file, "line": side.line, "function": side.function}
