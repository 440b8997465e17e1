"""The cost of a message in programs that pass messages: time, bytes of log, memory; and replay against plain."""

from collections.abc import Callable, Sequence
from statistics import median

from tests.bench.measure import Measurement, Round
from tests.bench.report import Startup, summarise, verdict
from tests.bench.workloads import PARKED_TARGET
from tests.harness.table import as_text, with_unit

LEGEND = """\
us: a message in wall time, as the program itself measures it; of a replay, the whole command without start-up.
B/message: bytes of the event log, before and after compression. peak: memory of the largest process.
replay: CPU time of the whole command against plain, and without start-up, which is what is judged."""

_HEADING = (
    "workload|plain us|recorded us|replay us|raw B/message|sealed B/message|peak plain|recorded|replay|replay|net|is"
)


def message_parts(measurements: Sequence[Measurement], startup: Startup) -> list[str]:
    """Return the table, the cost of a thousand waiting threads, and the legend; empty without such workloads."""
    wanted = [each for each in measurements if each.workload.messages is not None and each.rounds]
    if not wanted:
        return []
    table = as_text(_HEADING.split("|"), [_row(each, startup) for each in wanted])
    return [table, *_parked(wanted), LEGEND]


def message_us(measurement: Measurement) -> tuple[float | None, float | None]:
    """Return the medians of microseconds per message, plain and recorded."""
    return (
        _middle(measurement, lambda turn: turn.plain_message),
        _middle(measurement, lambda turn: turn.recorded_message),
    )


def parked_ratio(measurements: Sequence[Measurement], *, is_recorded: bool) -> float | None:
    """Return the cost of a message among a thousand waiting threads against one; None if either was not measured."""
    found = {each.workload.name: message_us(each)[is_recorded] for each in measurements}
    one, thousand = found.get("parked-1"), found.get("parked-1000")
    return thousand / one if one and thousand else None


def _row(measurement: Measurement, startup: Startup) -> list[str]:
    workload, figures = measurement.workload, measurement.figures
    summary = summarise(measurement, startup)
    plain, recorded = message_us(measurement)
    replayed = _middle(measurement, lambda turn: _less(turn.replayed_wall, startup.replayed_wall))
    messages = workload.messages

    def each(value: float | None) -> float | None:
        return value / messages if value is not None and messages else None

    peaks = (
        _middle(measurement, lambda turn: turn.plain_peak),
        _middle(measurement, lambda turn: turn.recorded_peak),
        _middle(measurement, lambda turn: turn.replayed_peak),
    )
    return [
        workload.name,
        _one_digit(plain),
        _one_digit(recorded),
        _one_digit(each(1e6 * replayed if replayed is not None else None)),
        _one_digit(each(figures.log_raw if figures else None)),
        _one_digit(each(figures.log_stored if figures else None)),
        *("-" if peak is None else with_unit(peak) for peak in peaks),
        _two_digits(summary.replayed_ratio),
        _two_digits(summary.replayed_net_ratio),
        verdict(summary.replayed_net_ratio, workload.replay_target),
    ]


def _parked(measurements: Sequence[Measurement]) -> list[str]:
    plain, recorded = (parked_ratio(measurements, is_recorded=each) for each in (False, True))
    if plain is None:
        return []
    return [
        f"a message among 1,000 parked threads against one: plain {plain:.2f}, recorded {_two_digits(recorded)}; "
        f"target at most {PARKED_TARGET:.2f}: {verdict(recorded, PARKED_TARGET)}"
    ]


def _middle(measurement: Measurement, pick: Callable[[Round], float | None]) -> float | None:
    values = [value for value in map(pick, measurement.rounds) if value is not None]
    return median(values) if values else None


def _less(value: float | None, other: float | None) -> float | None:
    return value - other if value is not None and other is not None else None


def _one_digit(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _two_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
