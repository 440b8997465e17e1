"""The plan of a resumption as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from replaydbg.events.show import printable
from replaydbg.render.measures import show_seconds, show_size
from replaydbg.resume.checks.changed_sources import ChangedSource
from replaydbg.resume.checks.continuations import Continuation
from replaydbg.resume.findings import CallVerdict, Finding
from replaydbg.resume.outside_acts import OutsideAct
from replaydbg.resume.plan import Plan, PlannedImage, RecoveryCost
from replaydbg.resume.plan_rows import Fate, PlanRow
from replaydbg.resume.power_loss.recovered_files import Leftover
from replaydbg.resume.settle import call_text, can_skip

MOST_ACTS_SHOWN = 10
"""How many acts after the moment are listed; the JSON has more."""

_WIDTH = 11
"""Columns of the words at the left, the two blanks before them included."""
_WORDS = {
    CallVerdict.DONE: "done",
    CallVerdict.REPEAT: "repeat",
    CallVerdict.SKIP: "skip",
    CallVerdict.CHANGED: "changed",
    CallVerdict.UNKNOWN: "not known",
}


def start_line(plan: Plan) -> str:
    """Return the sentence that is printed before the replay begins."""
    where = plan.resources.cwd if isinstance(plan.resources.cwd, str) else "an unknown directory"
    return (
        f"replaying {printable(plan.name)} up to event {plan.event:,}; then the program runs live in "
        f"{printable(where)}, with all your rights"
    )


def plan_lines(plan: Plan) -> list[str]:
    """Return the plan for people: standard streams are left out, unless there is something to know about one."""
    lines = [f"live after event {plan.event:,}{_thread(plan)}", *resource_lines(plan)]
    lines += [*continuation_lines(plan.continuation), *source_lines(plan.sources)]
    lines += text_block("differs", plan.differences)
    lines += text_block("truncated", leftover_texts(plan.leftovers))
    lines += text_block("in flight", in_flight_texts(plan))
    acts = [f"event {each.event:,}: {each.shown}" for each in shown_acts(plan.past.acts)]
    acts += more_acts(len(acts), plan.past.act_count, plan.past.printed_count)
    lines += text_block("done after", [*acts, *unlisted_acts([plan])])
    lines += text_block("images", image_texts(plan.images))
    return [*lines, *recovery_lines(plan.recovery, plan.recovery.seconds), *clock_lines([plan.stood_ns])]


def image_texts(images: Sequence[PlannedImage] | None) -> list[str]:
    """Return how far each image of a standby is, and why it cannot be used; None: none were asked for."""
    if images is None:
        return []
    return [_image_text(each) for each in images] or ["there is no complete image"]


def _image_text(image: PlannedImage) -> str:
    facts = [f"event {image.event:,}, {show_size(image.size)}"] if image.event is not None else []
    facts += [f"not usable: {printable(image.unfit)}"] if image.unfit else []
    return f"{printable(image.path)}: {'; '.join(facts)}"


def recovery_lines(recovery: RecoveryCost, seconds: float) -> list[str]:
    """Return how long it takes until all is live, what is replayed until then, and how large the logs are."""
    computed = f", {show_seconds(recovery.cpu_ms_left / 1000)} of CPU time" if recovery.cpu_ms else ""
    events = recovery.events_left
    after = f" after the image at event {recovery.saved_events:,}" if recovery.image_bytes else ""
    repeated = f"{events:,} event{'s' * (events != 1)}{after}{computed}"
    text = f"about {show_seconds(seconds)} ({repeated}); log size {show_size(recovery.log_bytes)}"
    return text_block("recovery", [text])


def clock_lines(stood_ns: Collection[int]) -> list[str]:
    """Return for how long the monotonic clocks were paused: nanoseconds, for each process that goes live."""
    shortest, longest = _duration(min(stood_ns)), _duration(max(stood_ns))
    text = longest if shortest == longest else f"{shortest} to {longest}, by process"
    return text_block("clock", [f"monotonic clocks: paused for {text}"])


def shown_acts(acts: Iterable[OutsideAct]) -> list[OutsideAct]:
    """Return those that are listed: what was printed would fill the list."""
    return [each for each in acts if not each.is_standard][:MOST_ACTS_SHOWN]


def more_acts(shown: int, count: int, printed: int) -> list[str]:
    """Return how many acts are not listed: of `count`, of which `printed` wrote to the standard streams."""
    lines = [f"and {count - printed - shown:,} earlier ones"] if count - printed > shown else []
    if not printed:
        return lines
    text = f"{printed:,} write{'s' * (printed != 1)} to standard output or error"
    return [*lines, f"and {text}" if shown or lines else text]


def unlisted_acts(plans: Iterable[Plan]) -> list[str]:
    """Return that acts are missing in the list because logging stopped before the program ended; empty: none are."""
    causes = dict.fromkeys(each.stopped for each in plans if each.stopped)
    return [f"logging stopped ({each}): what was done after that is not listed, and is done again" for each in causes]


def in_flight_texts(plan: Plan) -> Iterator[str]:
    """Yield each call in flight with what is done."""
    for each in plan.in_flight:
        yield _finding_text(plan, each)


def leftover_texts(leftovers: Iterable[Leftover]) -> Iterator[str]:
    """Yield for each file that is truncated its new size, and how much is removed."""
    for each in leftovers:
        yield f"{printable(each.path)}: to {each.size:,} bytes ({each.found - each.size:,} bytes removed)"


def continuation_lines(found: Continuation | None) -> list[str]:
    """Return that the program was already resumed; nothing if it was not."""
    return text_block("resumed", [found.text] if found is not None else [])


def source_lines(sources: Sequence[ChangedSource]) -> list[str]:
    """Return that source files have changed since the program loaded them; nothing without any."""
    if not sources:
        return []
    first = sources[0]
    what = f"{first.path} {'was deleted' if first.is_gone else 'was changed'} after the program loaded it"
    if len(sources) > 1:
        what = f"{len(sources):,} files were changed or deleted after the program loaded them, such as {first.path}"
    return text_block("sources", [f"{what}; the recorded code runs"])


def resource_lines(plan: Plan) -> list[str]:
    """Return what becomes of each resource; nothing of a standard stream that is simply that of the command."""
    lines: list[str] = []
    for fate in (Fate.REOPENED, Fate.LOST, Fate.REFUSED):
        rows = [row for row in plan.rows if row.fate is fate and (row.kind != "streams" or row.reason)]
        lines += text_block(fate.value, (_row_text(row) for row in rows))
    return lines


def question(finding: Finding) -> str:
    """Return the question whether a call in flight is made again."""
    place = f" at {finding.call.file}:{finding.call.line}" if finding.call.file else ""
    choices = f"[r]epeat, {'[s]kip, ' * can_skip(finding.call)}Enter to stop"
    return printable(f"{call_text(finding.call)}{place} was in flight: {finding.reason}. Make it now? {choices}: ")


def _thread(plan: Plan) -> str:
    if plan.thread is None:
        return ""
    name = plan.thread_name(plan.thread)
    return f", in thread {plan.thread}{f' {printable(name)}' if name else ''}"


def _row_text(row: PlanRow) -> str:
    if row.kind == "streams":
        return f"{row.text}: {row.reason}"
    word = "descriptors" if len(row.numbers) > 1 else "descriptor"
    numbers = f" ({word} {', '.join(map(str, row.numbers))})" if row.numbers else ""
    return f"{row.kind}: {row.text}{numbers}{f': {row.reason}' if row.reason else ''}"


def _finding_text(plan: Plan, finding: Finding) -> str:
    call = finding.call
    name = call.name or plan.thread_name(call.thread)
    decided = f"{_WORDS[finding.verdict]} ({finding.reason})"
    return f"thread {call.thread}{f' {name}' if name else ''}: {call_text(call)}: {decided}"


def text_block(word: str, texts: Iterable[str]) -> list[str]:
    """Return lines with a word in front of the first one; nothing without texts."""
    heads = [f"  {word}"]
    return [f"{(heads.pop() if heads else ''):<{_WIDTH + 2}}{printable(text)}" for text in texts]


def _duration(nanoseconds: int) -> str:
    seconds = nanoseconds // 1_000_000_000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
