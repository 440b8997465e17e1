"""The rows that have targets: each with the cost of the plain program, the measured figures and the targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.bench.report import verdict
from tests.harness.table import as_text

Facts = Mapping[str, Any]
"""The figures that `--json` writes; several files of one Python can be merged."""

NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Part:
    """One figure of a row."""

    # What it is: "record", "replay", or a description.
    name: str
    value: float | None
    target: float | None
    # "" is for ratios to plain.
    unit: str = ""

    @property
    def result(self) -> str:
        """`met`, `missed`, a dash without a target."""
        return verdict(self.value, self.target)


@dataclass(frozen=True, slots=True)
class Goal:
    """One row."""

    # Its name in the bench: what `--only` takes.
    key: str
    name: str
    # Seconds of CPU time of the plain program; None: there is none.
    plain: float | None
    parts: tuple[Part, ...]
    # Why it was not measured; empty if it was.
    missing: str = ""


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A row that is a workload, run plain, recorded and replayed."""

    key: str
    name: str
    # The start-up of an empty program is subtracted from all sides.
    is_net: bool = False


_RATIOS = (
    _Ratio("queue", "queue, 4 threads, 200,000 messages"),
    _Ratio("rare-lock", "4 threads computing, rare lock"),
    _Ratio("text", "200 MB text by line"),
    _Ratio("walk", "walk and open 20,000 files"),
    _Ratio("imports", "import pandas, SQLAlchemy, aiohttp"),
    _Ratio("http", "HTTP loopback, 2,000 requests"),
    _Ratio("echo", "asyncio, 20,000 messages"),
    _Ratio("formats", "json, re, csv"),
    _Ratio("clock", "1 million `time.time()`, without start-up", is_net=True),
)


def goals(facts: Facts) -> list[Goal]:
    """Return every row, in order; rows that were not measured say so."""
    return [
        *(_ratio(facts, each) for each in _RATIOS),
        _startup(facts),
        *_plugin(facts),
        *_debugger(facts),
        _resume(facts),
        _takeover(facts),
    ]


def goals_text(facts: Facts) -> str:
    """Return the rows that were measured as a table for people; empty if there are none."""
    rows = [
        [
            each.name.replace("`", ""),
            "-" if each.plain is None else f"{each.plain:.3f} s",
            part.name,
            figure(part.value, part.unit),
            figure(part.target, part.unit),
            part.result.upper() if part.result == "missed" else part.result,
        ]
        for each in goals(facts)
        if not each.missing
        for part in each.parts
    ]
    return as_text(["row", "plain", "figure", "measured", "target", "is"], rows) if rows else ""


def figure(value: float | None, unit: str) -> str:
    """Return a figure with its unit; two digits for ratios and seconds."""
    if value is None:
        return "-"
    if unit in ("", "s", "us"):
        return f"{value:.2f} {unit}".strip()
    return f"{value:,.0f} {unit}"


def _ratio(facts: Facts, row: _Ratio) -> Goal:
    found = next((each for each in facts.get("workloads", ()) if each["name"] == row.key), None)
    if found is None:
        return Goal(row.key, row.name, None, (), NOT_MEASURED)
    if not found["rounds"]:
        return Goal(row.key, row.name, None, (), found["failure"] or NOT_MEASURED)
    medians = found["medians"]
    recorded, replayed = ("net_ratio", "replayed_net_ratio") if row.is_net else ("recorded_ratio", "replayed_ratio")
    parts = (
        Part("record", medians[recorded], found["target"]),
        Part("replay", medians[replayed], found["replay_target"]),
    )
    return Goal(row.key, row.name, medians["plain_cpu"], parts)


def _startup(facts: Facts) -> Goal:
    empty = next((each for each in facts.get("workloads", ()) if each["name"] == "empty"), None)
    record, replay = facts.get("startup_ms"), facts.get("replay_startup_ms")
    if empty is None or record is None or replay is None:
        return Goal("empty", "start-up, empty program", None, (), NOT_MEASURED)
    parts = (
        Part("record", record["cpu"], record["target"], "ms"),
        Part("replay", replay["cpu"], replay["target"], "ms"),
    )
    return Goal("empty", "start-up, empty program", empty["medians"]["plain_cpu"], parts)


def _plugin(facts: Facts) -> Iterator[Goal]:
    found = facts.get("plugin")
    names = (
        "pytest, 500 trivial tests, retain-on-failure",
        "a trivial failing test",
        "examination of a failing test",
    )
    if found is None:
        yield from (Goal("plugin", name, None, (), NOT_MEASURED) for name in names)
    else:
        yield Goal("plugin", names[0], found["plain"], (Part("record", found["ratio"], found["target"]),))
        stored = (found["recording"] + found["index"]) / 1000
        yield Goal(
            "plugin",
            names[1],
            None,
            (
                Part("CPU time", found["failure_ms"], found["failure_target_ms"], "ms"),
                Part("recording and index", stored, found["failure_target_kb"], "kB"),
            ),
        )
        yield Goal(
            "plugin",
            names[2],
            None,
            tuple(
                Part(kind, seconds, found["examination_target"], "s") for kind, seconds in found["examinations"].items()
            ),
        )
    suites = facts.get("suites")
    name = "pytest plugin `on`, real test suites"
    if suites is None or suites["ratio"] is None:
        yield Goal("suites", name, None, (), NOT_MEASURED if suites is None else "; ".join(suites["missing"].values()))
    else:
        parts = (Part(f"record, median of {len(suites['ratios'])}", suites["ratio"], suites["target"]),)
        yield Goal("suites", name, sum(suites["plain"].values()), parts)


def _debugger(facts: Facts) -> Iterator[Goal]:
    yield _diff(facts)
    journeys = {each["journey"]["name"]: each for each in facts.get("travel", ())}
    yield _why(journeys.get("travel-events"))
    yield _conditions(facts)
    yield _seek("travel-events", "seek, 10 M lines", journeys.get("travel-events"))
    yield _seek("travel-long", "seek, 100 M lines", journeys.get("travel-long"))
    yield _opening(journeys.get("travel-long"), facts)


def _diff(facts: Facts) -> Goal:
    found = facts.get("diff")
    name = "`diff` of two moments, 1 M objects"
    if found is None:
        return Goal("diff", name, None, (), NOT_MEASURED)
    parts = (
        Part("CPU time", found["difference"], found["target"], "s"),
        Part("CPU time, --no-writes", found["without_writers"], found["target"], "s"),
        Part("first row, wall", found["first"], None, "s"),
        Part("whole command, wall", found["ended"], None, "s"),
    )
    return Goal("diff", name, None, parts)


def _why(found: Facts | None) -> Goal:
    name = "`why` of a rarely written attribute, 10 M lines"
    if found is None:
        return Goal("travel-events", name, None, (), NOT_MEASURED)
    kinds = ("attribute, every million lines", "attribute, long ago")
    target = found["targets"]["why_p95_ms"]
    parts = tuple(
        Part(f"p95, {kind.removeprefix('attribute, ')}", found["percentiles_ms"][kind]["p95"], target, "ms")
        for kind in kinds
        if kind in found["percentiles_ms"]
    )
    return Goal("travel-events", name, found.get("plain_cpu"), parts)


def _conditions(facts: Facts) -> Goal:
    found = facts.get("conditions")
    name = "`log --if`, conditional breakpoint, each passage"
    if found is None:
        return Goal("conditions", name, None, (), NOT_MEASURED)
    return Goal("conditions", name, None, (Part("wall", found["never"], found["target"], "us"),))


def _seek(key: str, name: str, found: Facts | None) -> Goal:
    if found is None:
        return Goal(key, name, None, (), NOT_MEASURED)
    seek, target = found["percentiles_ms"]["seek"], found["targets"]["seek_p95_ms"]
    queued = found["queued"]
    parts = (
        Part("p95, wall", seek["p95"], target, "ms"),
        Part("p95, CPU time there", seek["cpu_p95"], None, "ms"),
        Part("a process waited for a CPU", 100 * queued if queued is not None else None, None, "% of the time"),
    )
    return Goal(key, name, found.get("plain_cpu"), parts)


def _opening(found: Facts | None, facts: Facts) -> Goal:
    name = "open 100 M lines to the first answer"
    if found is None:
        return Goal("travel-long", name, None, (), NOT_MEASURED)
    steps = facts.get("steps")
    first, plain = found["first"], found.get("plain_cpu")
    # One replay at the cost of the step clock.
    bound = found["replay_cpu"] * steps["ratios"]["clock"] if steps else None
    parts = (
        Part("first time, wall", first["answered"], bound, "s"),
        Part("first time, CPU time", first["cpu"], bound, "s"),
        Part("again, wall", found["second"], 1.0, "s"),
    )
    return Goal("travel-long", name, plain, parts)


def _resume(facts: Facts) -> Goal:
    found = facts.get("resume")
    name = "resume a killed program, 300,000 events"
    if found is None:
        return Goal("resume", name, None, (), NOT_MEASURED)
    parts = (
        Part("CPU time per event until live", median(found["until_live"]), found["target_us"], "us"),
        Part("of which replay", median(found["replayed"]), found["target_us"], "us"),
        Part("CPU time of a later event, relative to a recorded one", found["live_ratio"], found["target_live"]),
    )
    return Goal("resume", name, median(found["plain"]) * 300_000 / 1e6, parts)


def _takeover(facts: Facts) -> Goal:
    found = facts.get("takeover")
    name = "takeover by a standby, from the kill to the next line"
    if found is None:
        return Goal("takeover", name, None, (), NOT_MEASURED)
    parts = tuple(
        Part(f"wall, median, {int(events):,} events before", 1e3 * median(taken), 100.0, "ms")
        for events, taken in found["seconds"].items()
    )
    return Goal("takeover", name, None, parts)
