"""Differences between two recordings of one program as text and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from replaydbg.bisect.lane_turns import LaneKey, Preemption
from replaydbg.bisect.twins import Behaviour, BehaviourKind, Comparison, Input, InputKind
from replaydbg.debugger.compare.first_difference import MemoryDifference, TurningPoint, is_own
from replaydbg.debugger.compare.thread_switches import Interruption, LinesRun, TurnOrder
from replaydbg.errors import clause, quoted
from replaydbg.events.records import Event, Site
from replaydbg.events.show import printable, show_call, show_outcome, show_value
from replaydbg.heap.comparison.diff_results import REORDERED, Change
from replaydbg.heap.retention.holding import MINE
from replaydbg.hunt.codes import CodeDifference, SourceChange
from replaydbg.hunt.flip import Flip, OtherTurn
from replaydbg.hunt.reading import Twins
from replaydbg.render.tables import Table, markdown
from replaydbg.render.texts import moment_text, preemptions_text

MOST = 5
"""The most items of one kind that are listed."""

_RUNS = ("good run", "bad run")

_WIDTH = 60
"""Characters of a value."""


@dataclass(frozen=True, slots=True)
class Travelled:
    """Results of visiting moments of two recordings."""

    apart: tuple[MemoryDifference, ...] = ()
    """First differences in memory: in the program's own variables, then, on request, in those of libraries."""
    turn: TurningPoint | None = None
    """Where the bad run diverges from the same run with the inputs that make the difference."""
    gave_way: tuple[Interruption | None, ...] = ()
    """For each preemption that made the difference where that thread was; None: it was not found."""
    took_turns: tuple[TurnOrder | None, ...] = ()
    """For each switch at which another thread has to go on what the two ran; None: it was not found."""


@dataclass(frozen=True, slots=True)
class RecordingsReport:
    """All that was found out about two recordings."""

    twins: Twins
    """The recordings."""
    names: tuple[str, str]
    """How commands name them: the good one, the bad one."""
    endings: tuple[str, str]
    """Descriptions of how they ended."""
    comparison: Comparison
    """The differences in inputs and behaviour."""
    flip: Flip | None
    """The cause of the difference; None: it was not searched."""
    travelled: Travelled
    """Results of visiting moments of both."""
    code: CodeDifference | None = None
    """How the sources of the two runs differ; None: they do not."""


def text(found: RecordingsReport) -> str:
    """Return it for people."""
    good, bad = found.names
    width = max(len(good), len(bad))
    lines = [f"good  {good:<{width}}  {found.endings[0]}", f"bad   {bad:<{width}}  {found.endings[1]}"]
    for section in _sections(found):
        lines += ["", section.title, *(f"  {_row_text(section, row)}" for row in section.rows)]
        lines += [f"  {note}" for note in section.notes]
    return "\n".join(printable_lines(lines)) + "\n"


def _row_text(section: Table, row: tuple[str, ...]) -> str:
    """Return a row as a sentence: a continuation has no first cell."""
    if section.columns[1:] == _RUNS and row[0] and row[2]:
        return f"{row[0]}: {row[1]} in the good run, {row[2]} in the bad run"
    return " ".join(filter(None, (f"{row[0]}:" if row[0] and len(row) > 1 else row[0], *row[1:])))


def printable_lines(lines: Sequence[str]) -> list[str]:
    """Return lines with everything escaped that no terminal should get."""
    return [printable(line) for line in lines]


def as_markdown(found: RecordingsReport) -> str:
    """Return it as Markdown, for a pull request."""
    rows = tuple(zip(("good", "bad"), found.names, found.endings, strict=True))
    return markdown([Table("Cause of the difference", ("run", "recording", "ended"), rows), *_sections(found)])


# ---- sections ----


def _sections(found: RecordingsReport) -> Iterator[Table]:
    if found.code is not None:
        yield _code_section(found.code)
    if found.flip is not None:
        yield _flip_section(found, found.flip)
    for apart in found.travelled.apart:
        yield _memory_section(apart)
    if found.travelled.turn is not None:
        yield _turn_section(found.travelled.turn)
    if found.comparison.inputs:
        yield _inputs_section(found)
    if found.comparison.first is not None:
        yield _behaviour_section(found, found.comparison.first)
    ways = [(f"replaydbg {' '.join(map(quoted, words))}",) for words in travels(found)]
    if ways:
        yield Table("Open the recordings there", ("command",), tuple(ways))


def _code_section(code: CodeDifference) -> Table:
    rows = []
    for change in code.changes[:MOST]:
        place = f"{change.path}:{change.line}" if change.line else change.path
        rows.append((place, _line_text(change, change.good), _line_text(change, change.bad)))
    notes = [f"and {len(code.changes) - MOST} more files"] if len(code.changes) > MOST else []
    if code.bad_passes:
        notes.append("With the sources of the good run, the bad run passes.")
    elif code.bad_passes is not None:
        notes.append("With the sources of the good run, the bad run still fails.")
    if code.good_fails:
        notes.append("With the sources of the bad run, the good run fails in the same way.")
    elif code.good_fails is not None:
        notes.append("With the sources of the bad run, the good run does not fail in the same way.")
    if code.why:
        notes.append(f"Not everything could be confirmed: {code.why.rstrip('.')}.")
    title = f"Cause of the difference: the code ({code.trials} replays)" if code.is_cause else "The code differs"
    return Table(title, ("first different line", *_RUNS), tuple(rows), notes=tuple(notes))


def _line_text(change: SourceChange, line: str | None) -> str:
    if line is None:
        return "(not imported)"
    return (line or "(no text)") if change.line else "(imported)"


def _flip_section(found: RecordingsReport, flip: Flip) -> Table:
    trials = f"{flip.trials} trial{'s' if flip.trials != 1 else ''}"
    if flip.undecided:
        trials += f", {flip.undecided} of them inconclusive"
    if flip.reason:
        return Table("Cause of the difference: unknown", (), (), notes=(f"{flip.reason} ({trials}).",))
    rows = [row for each in flip.inputs for row in _input_rows(found, each)]
    for preemption, gave in zip(flip.preemptions, found.travelled.gave_way, strict=True):
        rows += _preemption_rows(found, preemption, gave)
    for turn, took in zip_longest(flip.turns, found.travelled.took_turns):
        rows += _turn_rows(found, turn, took)
    notes = (*_flip_notes(flip), *_confirmation(flip))
    title = "Cause of the difference" if flip.is_confirmed else "Possible cause of the difference (not confirmed)"
    return Table(f"{title} ({trials})", ("input", *_RUNS), tuple(rows), notes=notes)


def _flip_notes(flip: Flip) -> Iterator[str]:
    these = "this input alone" if len(flip.inputs) == 1 else "these inputs alone"
    is_schedule = any(each.kind is InputKind.SCHEDULE for each in flip.inputs)
    if is_schedule and flip.preemptions:
        yield "Without preemptions the bad run passes; with only those above it fails."
    elif is_schedule and flip.turns:
        yield "With the other thread first, and everything else unchanged, the bad run passes."
    elif is_schedule and len(flip.inputs) == 1 and not flip.is_confirmed:
        passes = "The good run still passes with every other input of the bad run"
        yield f"{passes}; only the thread schedule is left as the cause."
        yield "Which thread switches decide is unknown."
    elif is_schedule and len(flip.inputs) == 1:
        yield "Without preemptions, and everything else unchanged, the bad run passes."
    elif flip.is_from_bad:
        yield f"With {these} from the bad run, the good run fails in the same way."
    else:
        yield f"With {these} from the good run, the bad run passes."
    if "thread" in dict(flip.liberties) and not is_schedule:
        yield "The thread schedule differed there as well: that may be the cause."
    if flip.explained.of > 1:
        yield f"It explains {flip.explained.runs} of {flip.explained.of} failing runs."
    for other in flip.others[:MOST]:
        names = ", ".join(dict.fromkeys(each.gate or f"{each.kind.value} {each.name}".strip() for each in other))
        how = "" if len(other) == 1 else f"{len(other)} results of " if other[0].gate else f"{len(other)} of "
        yield f"The same holds for other inputs: {how}{names}."
    if flip.is_cut:
        yield "The limit of trials was reached; a smaller set may exist."


def _confirmation(flip: Flip) -> Iterator[str]:
    """Yield the replays that confirm the answer, and those that do not."""
    good = [each for each in flip.replays if each.is_confirmed]
    if good:
        done = "; ".join(
            f"{each.what}{', it' if _is_way(each.what) else ''} {each.outcome.value}" for each in good if each.outcome
        )
        yield f"Confirmed by {len(good)} more replay{'s' if len(good) != 1 else ''}: {done}."
    for each in flip.replays:
        if not each.is_confirmed:
            reason = f"not replayed: {each.said}" if each.outcome is None else each.said
            yield f"Not confirmed: {each.what} {clause(reason)}."
    if not flip.replays:
        yield "Not confirmed: not replayed with and without it."


def _is_way(what: str) -> bool:
    return what.startswith("with ")


def _preemption_rows(
    found: RecordingsReport, each: Preemption, at: Interruption | None
) -> Iterator[tuple[str, str, str]]:
    name = _lane_text(each.lane)
    if at is None:
        yield f"{name} was interrupted", f"{each.ticks:,} ticks after event {each.after:,}", ""
        return
    before = f" before {at.resumed.file}:{at.resumed.line}" if at.resumed is not None else ""
    place = f"{at.place.file}:{at.place.line} in {at.place.function}"
    yield f"{name} at {place}", f"{at.source} ({moment_text(at.moment)})", ""
    called = f", called from {at.called_from.file}:{at.called_from.line}" if at.called_from is not None else ""
    yield "", f"  was interrupted{before}{called}", ""
    # Lines of libraries alone are of little interest: the first ones are enough.
    for ran in at.meanwhile[: MOST if any(is_own(each.file) for each in at.meanwhile) else 1]:
        yield "", f"  meanwhile {_ran_text(found, ran)}", ""


def _turn_rows(found: RecordingsReport, each: OtherTurn, took: TurnOrder | None) -> Iterator[tuple[str, str, str]]:
    late = _lane_text(each.instead_key)
    if took is None or not took.first:
        yield f"after {_lane_text(each.gave_way)}", f"{_lane_text(each.recorded_key)} continued before {late}", ""
        return
    lanes = [ran.lane for ran in took.first]
    names = [_lane_text(found.twins.bad_side.lanes.get(lane, ())) for lane in lanes if lane or not any(lanes)]
    yield f"{', '.join(dict.fromkeys(names))} continued before {late}", f"({moment_text(took.moment)})", ""
    for ran in took.first[:MOST]:
        yield "", f"  {_ran_text(found, ran)}", ""
    for ran in took.then[:MOST]:
        yield "", f"  then {_ran_text(found, ran)}", ""


def _ran_text(found: RecordingsReport, ran: LinesRun) -> str:
    source = found.twins.line(ran.file, ran.first)
    name = _lane_text(found.twins.bad_side.lanes.get(ran.lane, ()))
    return f"{name} ran {ran}{f': {source}' if source and ran.first == ran.last else ''}"


def _inputs_section(found: RecordingsReport) -> Table:
    """Return the first inputs that differ; only their number if it is known which of them matter."""
    inputs = found.comparison.inputs
    gates = Counter(event_of(found, each).gate for each in inputs if each.kind is InputKind.ANSWER)
    common = ", ".join(f"{gate} {count}" for gate, count in gates.most_common(MOST))
    answers = f"{sum(gates.values()):,} results of calls ({common})" if gates else ""
    if found.flip is not None and not found.flip.reason:
        others = [f"{each.kind.value} {each.name}".strip() for each in inputs if each.kind is not InputKind.ANSWER]
        return Table("Inputs that differ", (), (), notes=(", ".join(filter(None, [*others[:MOST], answers])),))
    rows = [row for each in _worth_listing(inputs) for row in _input_rows(found, each)]
    notes = (f"{sum(gates.values()):,} results of calls differ in total: {common}.",) if gates else ()
    return Table(f"Inputs that differ (first {MOST})", ("input", *_RUNS), tuple(rows), notes=notes)


def _worth_listing(inputs: Sequence[Input]) -> list[Input]:
    """Return what holds from the start on, and the first answers."""
    answers = [each for each in inputs if each.kind is InputKind.ANSWER]
    return [each for each in inputs if each.kind is not InputKind.ANSWER][:MOST] + answers[:MOST]


def _input_rows(found: RecordingsReport, each: Input) -> Iterator[tuple[str, str, str]]:
    if each.kind is not InputKind.ANSWER:
        unset = each.kind is InputKind.ENVIRONMENT
        good, bad = (
            ("not set" if unset and value is None else show_value(value, _WIDTH)) for value in (each.good, each.bad)
        )
        if each.kind is InputKind.SCHEDULE:
            good, bad = _order_texts(found, each)
        yield f"{each.kind.value} {each.name}".strip(), good, bad
        return
    event = event_of(found, each)
    if each.is_elapsed:
        unit = "ns" if isinstance(each.good, int) else "s"
        yield f"{show_call(event, _WIDTH)}, since its first call", *_elapsed_texts(found, each, unit)
    else:
        yield show_call(event, _WIDTH), show_value(each.good, _WIDTH), show_value(each.bad, _WIDTH)
    yield "", f"  {_place_text(found, event.site)}", f"(events {each.good_event} and {each.bad_event})"


def _order_texts(found: RecordingsReport, each: Input) -> tuple[str, str]:
    """Return how often threads were preempted; if they were not, which one ran first at the first difference."""
    if each.good or each.bad:
        return preemptions_text(each.good), preemptions_text(each.bad)
    turns = zip(found.twins.good_side.turns, found.twins.bad_side.turns, strict=False)
    first = next(((one, two) for one, two in turns if (one.lane, one.to) != (two.lane, two.to)), None)
    if first is None:
        return "in one order", "in another order"
    good, bad = (f"after {_lane_text(turn.lane)} {_lane_text(turn.to)} continues" for turn in first)
    return good, bad


def _lane_text(key: LaneKey) -> str:
    return key[-1][0] if key else "the main thread"


def _elapsed_texts(found: RecordingsReport, each: Input, unit: str) -> tuple[str, str]:
    first = next(other for other in found.comparison.inputs if other.gate == each.gate)
    good, bad = each.good - first.bad, each.bad - first.bad
    return (f"{good} {unit}", f"{bad} {unit}") if unit == "ns" else (f"{good:.6f} s", f"{bad:.6f} s")


def event_of(found: RecordingsReport, each: Input) -> Event:
    """Return the event of the bad run that an answer belongs to."""
    return found.twins.bad_side.events[each.bad_event - 1]


def _place_text(found: RecordingsReport, site: Site) -> str:
    source = found.twins.text(site)
    return f"{site}: {source}" if source else str(site)


def _behaviour_section(found: RecordingsReport, first: Behaviour) -> Table:
    rows = []
    for name, side, number, is_there in (
        ("good run", found.twins.good_side, first.good_event, first.kind is not BehaviourKind.ONLY_BAD),
        ("bad run", found.twins.bad_side, first.bad_event, first.kind is not BehaviourKind.ONLY_GOOD),
    ):
        if is_there and number:
            event = side.events[number - 1]
            rows.append((name, f"{show_call(event, _WIDTH)} {show_outcome(event, _WIDTH)}", f"(event {number})"))
            rows.append(("", f"  {_place_text(found, event.site)}", ""))
        else:
            rows.append((name, f"no counterpart after event {number}", ""))
    others = found.comparison.others - 1
    notes = (f"{others:,} more.",) if others else ()
    return Table(
        f"First difference in behaviour: {first.kind.value}", ("run", "event", "number"), tuple(rows), notes=notes
    )


def _memory_section(apart: MemoryDifference) -> Table:
    rows = [(each.path, *_values(each)) for each in apart.changed[:MOST]]
    rows += [(each.path, f"{each.before:,} items", f"{each.after:,} items") for each in apart.grown[: MOST - len(rows)]]
    notes = tuple(
        f"{word} {place.file}:{place.line} in {place.function}{f': {source}' if source else ''}"
        for word, place, source in (
            ("after", apart.place, apart.source),
            ("or, after its return,", apart.returned_to, apart.returned_to_source),
        )
        if place is not None
    )
    whose = "" if apart.scope == MINE else ", including libraries"
    return Table(f"First difference in memory{whose}", ("where", *_RUNS), tuple(rows), notes=notes)


def _values(each: Change) -> tuple[str, str]:
    if each.before != each.after:
        return each.before or "(not set)", each.after or "(not set)"
    # Of a long value only the beginning may be shown.
    return (
        each.before,
        "the same items in a different order"
        if each.kind == REORDERED
        else "a different value with the same beginning",
    )


def _turn_section(turn: TurningPoint) -> Table:
    ways = [
        f"continues at {each.file}:{each.line} in {each.function}" if each is not None else "runs no further line"
        for each in (turn.good, turn.bad)
    ]
    rows = (
        (
            f"after {turn.place.file}:{turn.place.line} in {turn.place.function}",
            turn.source,
            f"({moment_text(turn.moment)})",
        ),
    )
    notes = (f"With the inputs of the good run, the bad run {ways[0]}; as recorded, it {ways[1]}.",)
    return Table("First difference in control flow", ("line", "source", "moment"), rows, notes=notes)


def travels(found: RecordingsReport) -> Iterator[list[str]]:
    """Yield the commands that go where it matters, in both recordings."""
    good, bad = found.names
    ways: list[Interruption | TurnOrder] = [at for at in found.travelled.gave_way if at is not None]
    ways += [at for at in found.travelled.took_turns if at is not None]
    answers = [each for each in (found.flip.inputs if found.flip is not None else ()) if each.kind is InputKind.ANSWER]
    if ways:
        yield from (["debug", bad, "--at", moment_text(at.moment)] for at in ways[:MOST])
    elif answers:
        yield ["debug", good, "--at", str(answers[0].good_event)]
        yield ["debug", bad, "--at", str(answers[0].bad_event)]
    for apart in () if ways else found.travelled.apart:
        if not apart.is_flipped:
            yield ["debug", good, "--at", moment_text(apart.good)]
        yield ["debug", bad, "--at", moment_text(apart.bad)]
    if found.travelled.turn is not None:
        yield ["debug", bad, "--at", moment_text(found.travelled.turn.moment)]
