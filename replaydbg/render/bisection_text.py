"""The result of a bisection as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from replaydbg.debugger import Session
from replaydbg.debugger.bisection.bisect_results import Answer, Bisected, Culprit, Probe, Verdict, VerdictChange
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.true_stretches import TrueStretch
from replaydbg.debugger.session_results import Moment
from replaydbg.errors import clause
from replaydbg.render.tables import Table, drawn, markdown
from replaydbg.render.texts import event_text, events_of, moment_text, percent_text, place_text

MOST_VALUES, MOST_TEXT = 6, 120


def lines(
    session: Session, found: Bisected, reproduce: str, *, is_coloured: bool = False, width: int = 0
) -> Iterator[str]:
    """Yield what was found, for people; at its end the command that leads there. `width` is that of the table."""
    yield from summary_lines(session, found)
    if found.looks:
        yield from drawn([_probes(session, found)], width=width, is_coloured=is_coloured).rstrip("\n").split("\n")
    if reproduce:
        yield f"{'Go there' if found.culprit is not None else 'Open it'}: {reproduce}"


def summary_lines(session: Session, found: Bisected) -> Iterator[str]:
    """Yield what was found without the probes that found it."""
    yield from headline(session, found)
    if found.culprit is not None:
        yield from _about(session, found.culprit)
    yield from _how_sure(session, found)


def markdown_lines(session: Session, found: Bisected, reproduce: str) -> Iterator[str]:
    """Yield what was found as Markdown, for a pull request."""
    head, *rest = headline(session, found)
    yield f"**{head}**"
    yield ""
    if found.culprit is not None:
        yield "```"
        yield from _about(session, found.culprit)
        yield "```"
    yield from rest
    yield from _how_sure(session, found)
    yield ""
    if found.looks:
        yield markdown([_probes(session, found)]).rstrip("\n")
        yield ""
    yield f"Reproduce: `{reproduce}`"


def probe_text(session: Session, look: Probe) -> str:
    """Return one probe in a line."""
    reason = f": {look.reason}" if look.reason else ""
    return f"{moment_text(look.moment)}  {percent_text(look.count, session.index.total)}  {look.verdict.value}{reason}"


def verdict_change_lines(
    session: Session, predicate: str, flips: Iterable[VerdictChange], *, is_markdown: bool = False
) -> Iterator[str]:
    """Yield every change between not bad and bad."""
    rows = [
        (
            moment_text(each.moment),
            percent_text(each.count, session.index.total),
            "bad" if each.is_bad else "good again",
            place_text(session, each.file, each.line, each.function),
            session.source_line(each.file, each.line),
        )
        for each in flips
    ]
    if not rows:
        yield f"{predicate}: never changes."
        return
    table = Table(predicate, ("after", "%", "becomes", "place", "line"), tuple(rows))
    yield (markdown([table]) if is_markdown else drawn([table])).rstrip("\n")


def headline(session: Session, found: Bisected) -> Iterator[str]:
    """Yield what came of it in a sentence or two."""
    culprit = found.culprit
    if culprit is not None:
        place = place_text(session, culprit.file, culprit.line, culprit.function)
        share = percent_text(culprit.count, session.index.total)
        is_one_of_some = found.unfit or found.has_unseen
        since = (
            "first true after" if found.is_monotone else "true after" if is_one_of_some else "permanently true after"
        )
        since = "temporarily true after" if found.healed is not None else since
        yield f"{found.predicate}: {since} {moment_text(culprit.moment)}  {share}  thread {culprit.lane}  {place}"
    elif found.answer is Answer.ALWAYS:
        yield f"{found.predicate}: already true at {moment_text(found.first)}, where the search begins."
    elif found.answer is Answer.UNKNOWN:
        between = f"{moment_text(found.first)} and {moment_text(found.last)}"
        yield f"{found.predicate}: inconclusive between {between}."
        if found.last_reason:
            yield f"At {moment_text(found.last)} it cannot be evaluated: {clause(found.last_reason)}."
    elif found.last_healed is not None:
        yield f"{found.predicate}: no longer true at {moment_text(found.last)}, where the search ends."
    elif found.is_exact and not found.last_reason:
        yield f"{found.predicate}: true at no line from {moment_text(found.first)} to {moment_text(found.last)}."
    elif found.last_reason:
        yield f"{found.predicate}: cannot be evaluated at {moment_text(found.last)}: {clause(found.last_reason)}."
        yield from _scope_hint(found.last_reason, in_module=found.in_module)
    else:
        yield f"{found.predicate}: not true at {moment_text(found.last)}, where the search ends."
        if session.index.count(found.last) >= session.index.total:
            yield "The effect of the very last line cannot be seen: no line runs after it."
        if found.unfit:
            yield f"But it was true at {_moments(found.unfit)}: use --to with that moment, or --linear."
        elif not found.is_exact and not found.note:
            yield "It may have been temporarily true before that: --linear checks every line in between."


def _about(session: Session, culprit: Culprit) -> Iterator[str]:
    if culprit.source:
        yield f"  -> {culprit.line}  {culprit.source}"
    changed = [each for each in culprit.values if each.before != each.after]
    for each in (changed or list(culprit.values))[:MOST_VALUES]:
        before, after = (_short(text) or "(not set)" for text in (each.before, each.after))
        yield f"  {each.source}  {before} -> {after}" if before != after else f"  {each.source}  {after}"
    if culprit.before is Verdict.UNDECIDED:
        why = f": {clause(culprit.before_reason)}" if culprit.before_reason else ""
        yield f"  Before that line it cannot be evaluated{why}."
    if culprit.events:
        events = events_of(session, min(culprit.events), max(culprit.events))
        for event in events:
            if event.number in culprit.events:
                yield f"  event during this line: {event_text(event)}"


def _change_text(session: Session, flip: VerdictChange) -> str:
    return f"{moment_text(flip.moment)} {place_text(session, flip.file, flip.line, flip.function)}"


def _short(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."


def _how_sure(session: Session, found: Bisected) -> Iterator[str]:
    if found.looks:
        yield _search_text(found)
    if found.seen_at is not None:
        yield f"Seen at {moment_text(found.seen_at)}, where the expression is evaluated."
    times = "once" if found.passing == 1 else f"{found.passing:,} times"
    if found.passing and found.first_passing is not None:
        first = "" if found.passing == 1 else "first "
        healed = f", good again after {_change_text(session, found.first_healed)}" if found.first_healed else ""
        yield (
            f"The condition was also true temporarily before that, {times} among the lines checked "
            f"({first}after {moment_text(found.first_passing)}{healed}). Use --linear for the first, --all for a list."
        )
    if found.healed is not None:
        lines_between = found.healed.count - found.culprit.count if found.culprit is not None else 0
        yield (
            f"That was temporary: good again after {_change_text(session, found.healed)}, {lines_between:,} "
            f"line{'s' if lines_between != 1 else ''} later."
        )
        if found.passing:
            yield f"It was temporarily true {times} more: --all lists them."
    if found.last_healed is not None:
        yield (
            f"It was temporarily true {times}, and last became false again after "
            f"{_change_text(session, found.last_healed)}: --all lists them."
        )
    if found.unfit and found.culprit is not None:
        yield (
            f"It changes more than once: the probes at {_moments(found.unfit)} contradict a single change. This is one "
            "such line; "
            "--linear finds the first, --all lists all."
        )
    if found.note:
        yield found.note


def _search_text(found: Bisected) -> str:
    """Return how the result was found, without the probes that check it."""
    number = sum(not each.is_check for each in found.looks)
    if found.culprit is None:
        return f"Probed {len(found.looks)} of {found.places:,} checkpoints."
    if not found.is_exact:
        return f"Found with {number} probes at checkpoints and at lines between two of them."
    begin = "the last good" if found.last_good is not None else "the first"
    return (
        f"Found by probing {number} of {found.places:,} checkpoints, then checking every line between {begin} and the "
        "first bad one."
    )


def _probes(session: Session, found: Bisected) -> Table:
    rows = tuple(
        (
            moment_text(each.moment),
            percent_text(each.count, session.index.total),
            each.verdict.value + (" (check)" if each.is_check else ""),
            each.reason,
        )
        for each in sorted(found.looks, key=lambda each: each.count)
    )
    return Table("probes", ("moment", "%", "verdict", "why"), rows)


def _moments(moments: tuple[Moment, ...]) -> str:
    named = ", ".join(map(moment_text, moments[:3]))
    return f"{named} and {len(moments) - 3} more" if len(moments) > 3 else named


def never_true_lines(predicate: Predicate, end: Moment, reason: str) -> Iterator[str]:
    """Yield that an expression was never true; `reason`: why it has no value at the end of the search, or empty."""
    yield f"{predicate.text} was never true."
    if not reason:
        return
    yield f"At {moment_text(end)} it cannot be evaluated: {clause(reason)}."
    yield from _scope_hint(reason, in_module=not predicate.frame)


def _scope_hint(reason: str, *, in_module: bool) -> Iterator[str]:
    """Yield how to evaluate with local variables, if a name was not defined."""
    if in_module and reason.startswith("NameError"):
        yield "It is evaluated with the module's variables: --frame FUNCTION uses the local variables of a function."


def stretch_lines(session: Session, expression: str, found: Sequence[TrueStretch], *, width: int = 0) -> Iterator[str]:
    """Yield the stretches, at least one, as a table of `width` columns."""
    rows = tuple((*_stretch_end(session, each.begin), *_stretch_end(session, each.end)) for each in found)
    often = "once" if len(found) == 1 else f"{len(found):,} times"
    columns = ("true after", "line", "until after", "line")
    yield drawn([Table(f"{expression}: true {often}", columns, rows)], width=width).rstrip("\n")


def _stretch_end(session: Session, change: VerdictChange | None) -> tuple[str, str]:
    if change is None:
        return "-", ""
    return moment_text(change.moment), place_text(session, change.file, change.line, change.function)
