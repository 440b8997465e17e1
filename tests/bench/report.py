"""Turn measurements into medians, ratios and verdicts, as a table and as JSON."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tests.bench.measure import Measurement, Round
from tests.bench.workloads import CLOCK_BYTES_TARGET, REPLAY_STARTUP_TARGET_MS, STARTUP_TARGET_MS
from tests.harness.table import as_text, with_unit

SCHEMA_VERSION = 1

LEGEND = """\
Seconds are medians of CPU time, children included; ratios are medians of the ratios within each round.
recorded: the whole command, launcher and sealing included. program: the recorded process alone. net: program, with the
start-up of an empty program taken off both sides (start-up has a target of its own). The target is judged on net, and
once more on the whole command. replay/rec: whole commands; the target is never slower (1.00), on CPU time."""


@dataclass(frozen=True, slots=True)
class Startup:
    """The cost of an empty program: medians in seconds of CPU time, subtracted from the others."""

    plain: float
    program: float | None
    replayed: float | None
    # In wall time.
    replayed_wall: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """Medians of a workload; None for modes that were not measured."""

    plain_cpu: float | None
    plain_wall: float | None
    recorded_cpu: float | None
    program_cpu: float | None
    replayed_cpu: float | None
    # CPU seconds of the recording command outside the program's process.
    sealing_cpu: float | None
    # Ratios to plain.
    recorded_ratio: float | None
    recorded_wall_ratio: float | None
    program_ratio: float | None
    net_ratio: float | None
    replayed_ratio: float | None
    replayed_net_ratio: float | None
    # Ratios to the recording command.
    replayed_to_recorded: float | None
    replayed_to_recorded_wall: float | None
    # Bytes per event.
    raw_bytes: float | None
    sealed_bytes: float | None


def startup_of(measurement: Measurement) -> Startup:
    """Return the cost of the empty program."""
    summary = summarise(measurement, None)
    walls = [turn.replayed_wall for turn in measurement.rounds if turn.replayed_wall is not None]
    wall = median(walls) if walls else None
    return Startup(summary.plain_cpu or 0.0, summary.program_cpu, summary.replayed_cpu, wall)


def summarise(measurement: Measurement, startup: Startup | None) -> Summary:
    """Return medians over the rounds; without `startup` the net ratios are left out."""
    rounds, figures = measurement.rounds, measurement.figures
    events = figures.events if figures else 0

    def middle(pick: Callable[[Round], float | None]) -> float | None:
        values = [value for value in map(pick, rounds) if value is not None]
        return median(values) if values else None

    return Summary(
        plain_cpu=middle(lambda turn: turn.plain_cpu),
        plain_wall=middle(lambda turn: turn.plain_wall),
        recorded_cpu=middle(lambda turn: turn.recorded_cpu),
        program_cpu=middle(lambda turn: turn.program_cpu),
        replayed_cpu=middle(lambda turn: turn.replayed_cpu),
        sealing_cpu=middle(lambda turn: _less(turn.recorded_cpu, turn.program_cpu)),
        recorded_ratio=middle(lambda turn: _ratio(turn.recorded_cpu, turn.plain_cpu)),
        recorded_wall_ratio=middle(lambda turn: _ratio(turn.recorded_wall, turn.plain_wall)),
        program_ratio=middle(lambda turn: _ratio(turn.program_cpu, turn.plain_cpu)),
        net_ratio=middle(lambda turn: _net(turn, turn.program_cpu, startup, startup.program if startup else None)),
        replayed_ratio=middle(lambda turn: _ratio(turn.replayed_cpu, turn.plain_cpu)),
        replayed_net_ratio=middle(
            lambda turn: _net(turn, turn.replayed_cpu, startup, startup.replayed if startup else None)
        ),
        replayed_to_recorded=middle(lambda turn: _ratio(turn.replayed_cpu, turn.recorded_cpu)),
        replayed_to_recorded_wall=middle(lambda turn: _ratio(turn.replayed_wall, turn.recorded_wall)),
        raw_bytes=figures.log_raw / events if figures and events else None,
        sealed_bytes=figures.log_stored / events if figures and events else None,
    )


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _less(value: float | None, other: float | None) -> float | None:
    return value - other if value is not None and other is not None else None


def _net(turn: Round, value: float | None, startup: Startup | None, own: float | None) -> float | None:
    if startup is None:
        return None
    return _ratio(_less(value, own), turn.plain_cpu - startup.plain)


def as_table(measurements: Sequence[Measurement], empty: Measurement) -> str:
    """Return the report for people: costs, bytes, start-up, verdicts, failures."""
    startup = startup_of(empty)
    summaries = [(each, summarise(each, startup if each is not empty else None)) for each in measurements]
    costs = [
        [
            each.workload.name,
            _seconds(summary.plain_cpu),
            _seconds(summary.recorded_cpu),
            _seconds(summary.sealing_cpu),
            _times(summary.program_ratio),
            _times(summary.net_ratio),
            _times(each.workload.target),
            verdict(summary.net_ratio, each.workload.target),
            _times(summary.recorded_ratio),
            verdict(summary.recorded_ratio, each.workload.target),
            _times(summary.recorded_wall_ratio),
        ]
        for each, summary in summaries
    ]
    replays = [
        [
            each.workload.name,
            _seconds(summary.replayed_cpu),
            _times(summary.replayed_ratio),
            _times(summary.replayed_net_ratio),
            _times(each.workload.replay_target),
            verdict(summary.replayed_ratio, each.workload.replay_target),
            _times(summary.replayed_to_recorded),
            verdict(summary.replayed_to_recorded, 1.0),
            _times(summary.replayed_to_recorded_wall),
            f"{each.figures.events:,}" if each.figures else "-",
            f"{summary.raw_bytes:.1f}" if summary.raw_bytes else "-",
            f"{summary.sealed_bytes:.1f}" if summary.sealed_bytes else "-",
            with_unit(each.figures.size) if each.figures else "-",
        ]
        for each, summary in summaries
    ]
    cost_heading = "workload|plain s|recorded s|of it sealing s|program|net|target|net is|recorded|whole is|wall"
    replay_heading = (
        "workload|replay s|replay|net|target|whole is|replay/rec|which is|wall|events|raw B/event|sealed B/event|file"
    )
    parts = [
        "\n".join(f"{each.workload.name}: {each.workload.does}" for each in measurements),
        as_text(cost_heading.split("|"), costs),
        as_text(replay_heading.split("|"), replays),
        *_single_figures(measurements, empty),
        *(
            f"{each.workload.name}: {each.failure}"
            if not each.is_possible
            else f"{each.workload.name} FAILED: {each.failure}"
            for each in measurements
            if each.failure
        ),
        LEGEND,
    ]
    return "\n\n".join(parts)


def startup_ms(empty: Measurement) -> tuple[float | None, float | None]:
    """Return the additional milliseconds, of CPU time and of wall time, for recording an empty program."""
    return _more(empty, lambda turn: _less(turn.recorded_cpu, turn.plain_cpu)), _more(
        empty, lambda turn: _less(turn.recorded_wall, turn.plain_wall)
    )


def replay_startup_ms(empty: Measurement) -> tuple[float | None, float | None]:
    """Return the same for replaying it."""
    return _more(empty, lambda turn: _less(turn.replayed_cpu, turn.plain_cpu)), _more(
        empty, lambda turn: _less(turn.replayed_wall, turn.plain_wall)
    )


def _more(empty: Measurement, pick: Callable[[Round], float | None]) -> float | None:
    values = [1000 * value for value in map(pick, empty.rounds) if value is not None]
    return median(values) if values else None


def _single_figures(measurements: Sequence[Measurement], empty: Measurement) -> list[str]:
    lines = []
    cpu, wall = startup_ms(empty)
    if cpu is not None and wall is not None:
        lines.append(
            f"start-up: {cpu:.0f} ms more CPU time, {wall:.0f} ms more wall; "
            f"target at most {STARTUP_TARGET_MS:.0f} ms: {verdict(cpu, STARTUP_TARGET_MS)}"
        )
    cpu, wall = replay_startup_ms(empty)
    if cpu is not None and wall is not None:
        lines.append(
            f"start-up of a replay: {cpu:.0f} ms more CPU time, {wall:.0f} ms more wall; "
            f"target at most {REPLAY_STARTUP_TARGET_MS:.0f} ms: {verdict(cpu, REPLAY_STARTUP_TARGET_MS)}"
        )
    for each in measurements:
        raw = summarise(each, None).raw_bytes
        if each.workload.name == "clock" and raw is not None:
            lines.append(
                f"a clock event: {raw:.1f} bytes before compression; "
                f"target at most {CLOCK_BYTES_TARGET:.0f}: {verdict(raw, CLOCK_BYTES_TARGET)}"
            )
    return lines


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def verdict(value: float | None, target: float | None) -> str:
    """Return whether a target is met, in a word; a dash if there is none."""
    if value is None or target is None:
        return "-"
    # Two digits are printed, and the targets have as many.
    return "met" if round(value, 2) <= target else "missed"


def as_json(measurements: Sequence[Measurement], empty: Measurement) -> dict[str, Any]:
    """Return every figure of every round, the medians, and the machine as data."""
    startup = startup_of(empty)
    cpu, wall = startup_ms(empty)
    replay_cpu, replay_wall = replay_startup_ms(empty)
    return {
        "schema_version": SCHEMA_VERSION,
        "machine": {"platform": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version()},
        "startup_ms": {"cpu": cpu, "wall": wall, "target": STARTUP_TARGET_MS},
        "replay_startup_ms": {"cpu": replay_cpu, "wall": replay_wall, "target": REPLAY_STARTUP_TARGET_MS},
        "clock_bytes_target": CLOCK_BYTES_TARGET,
        "workloads": [
            {
                "name": each.workload.name,
                "does": each.workload.does,
                "target": each.workload.target,
                "replay_target": each.workload.replay_target,
                "messages": each.workload.messages,
                "failure": each.failure,
                "medians": asdict(summarise(each, startup if each is not empty else None)),
                "recording": asdict(each.figures) if each.figures else None,
                "rounds": [asdict(turn) for turn in each.rounds],
            }
            for each in measurements
        ],
    }
