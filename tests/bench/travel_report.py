"""The measured journeys through recordings, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tests.bench.journeys import BACK_TARGET, MEMORY_TARGET, OPENING_TARGET, WHY_TARGET
from tests.bench.report import verdict
from tests.bench.travel import Times, Travelled
from tests.harness.table import as_text, with_unit

LEGEND = """\
Wall time. pass: the first run of the whole program under the step clock, which leaves checkpoints. first answer: from
`replaydbg debug --batch` without an index until it prints where the program failed, and what of it comes to the pass;
again: a session with the index beside the recording. steps back: one line, from random places. why: in the frame of
`main`, from random places in the second half of the run; just now: written some hundred lines before; long ago: by the
first lines of the program; >: so many were given up. session: the pages of all its processes, what is shared counted
once, with their page tables. CPU: of the process that came there alone, without the clones on the way. load: the load
averages of one minute before and after; queued: how much of the time some process waited for a CPU. What else runs is
in all times."""

_RUN = "journey|lines|events|plain s|replay s|CPU s|pass s|first answer s|besides|is|again s|besides|is|load|queued"
_MOVE = "journey|checkpoints|every s|seeks|p50 ms|p95|target|is|CPU p50|p95|steps back|p50 ms|p95|target|is|CPU p50|p95"
_WHY = "journey|why|asked|p50 ms|p95|target|is|>"
_MEMORY = "journey|when|processes|pages|page tables|keeper|session|plain peak|times|target|is"


def travel_parts(all_travelled: Sequence[Travelled]) -> list[str]:
    """Return the tables and the legend; empty if nothing was measured."""
    if not all_travelled:
        return []
    return [
        as_text(_RUN.split("|"), [_run_row(each) for each in all_travelled]),
        as_text(_MOVE.split("|"), [_move_row(each) for each in all_travelled]),
        as_text(_WHY.split("|"), [row for each in all_travelled for row in _why_rows(each)]),
        as_text(_MEMORY.split("|"), [row for each in all_travelled for row in _memory_rows(each)]),
        LEGEND,
    ]


def travel_json(travelled: Travelled) -> dict[str, Any]:
    """Return every figure, and the summaries."""
    return asdict(travelled) | {
        "targets": {
            "opening_s": OPENING_TARGET,
            "seek_p95_ms": travelled.journey.seek_target,
            "back_p95_ms": BACK_TARGET,
            "why_p95_ms": WHY_TARGET,
            "memory_times": MEMORY_TARGET,
        },
        "percentiles_ms": {
            name: {
                "p50": times.percentile(50),
                "p95": times.percentile(95),
                "cpu_p50": times.cpu_percentile(50),
                "cpu_p95": times.cpu_percentile(95),
            }
            for name, times in {"seek": travelled.seek, "back": travelled.back, **travelled.why}.items()
        },
        "memory_times": travelled.memory_ratio,
    }


def _run_row(one: Travelled) -> list[str]:
    return [
        one.journey.name,
        f"{one.lines:,}",
        f"{one.events:,}",
        f"{one.plain_wall:.2f}",
        f"{one.replay_wall:.2f}",
        f"{one.replay_cpu:.2f}",
        f"{one.first.phases.first_pass:.2f}",
        f"{one.first.answered:.2f}",
        f"{one.first.besides:.2f}",
        verdict(one.first.besides, OPENING_TARGET),
        f"{one.second:.2f}",
        f"{one.second_besides:.2f}",
        verdict(one.second_besides, OPENING_TARGET),
        f"{one.load[0]:.1f}, {one.load[1]:.1f}",
        "-" if one.queued is None else f"{one.queued:.0%}",
    ]


def _move_row(one: Travelled) -> list[str]:
    return [
        one.journey.name,
        f"{one.checkpoints:,}",
        f"{one.spacing:.2f}",
        str(len(one.seek.each)),
        *_percentiles(one.seek, one.journey.seek_target),
        *_milliseconds(one.seek.cpu_percentile(50), one.seek.cpu_percentile(95)),
        str(len(one.back.each)),
        *_percentiles(one.back, BACK_TARGET),
        *_milliseconds(one.back.cpu_percentile(50), one.back.cpu_percentile(95)),
    ]


def _why_rows(one: Travelled) -> list[list[str]]:
    return [
        [one.journey.name, kind, str(len(times.each)), *_percentiles(times, WHY_TARGET), str(times.given_up or "-")]
        for kind, times in one.why.items()
    ]


def _memory_rows(one: Travelled) -> list[list[str]]:
    rows = []
    for when, held in one.memory.items():
        times = held.total / max(one.plain_peak, 1)
        sizes = (held.pages, held.page_tables, held.keeper, held.total, one.plain_peak)
        judged = [f"{times:.2f}", f"{MEMORY_TARGET:.2f}", verdict(times, MEMORY_TARGET)]
        rows.append([one.journey.name, when, str(held.processes), *map(with_unit, sizes), *judged])
    return rows


def _percentiles(times: Times, target: float | None) -> list[str]:
    half, most = times.percentile(50), times.percentile(95)
    wanted = "-" if target is None else f"{target:.0f}"
    return [*_milliseconds(half, most), wanted, verdict(most, target)]


def _milliseconds(*values: float | None) -> list[str]:
    return ["-" if each is None else f"{each:.1f}" for each in values]
