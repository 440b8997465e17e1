"""The lines of output around a moment, each with the moment at which it was printed."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Output
from replaydbg.pages.facts.hidden_texts import HiddenTexts
from replaydbg.pages.facts.page_facts import Instant, PrintedLine, PrintedPart
from replaydbg.render import texts

BEFORE, AFTER = 150, 30
"""Number of lines before a moment and after it."""
LONGEST = 1_000
"""Bytes of a line that are decoded."""


def printed_around(session: Session, count: int, hidden: HiddenTexts) -> PrintedPart:
    """Return the output around the line `count`; lines are counted as `@out:N` does."""
    output = session.index.output
    total = sum(each.data.count(b"\n") for each in output)
    is_open = bool(output) and not output[-1].data.endswith(b"\n")
    total += is_open
    earlier = sum(each.data.count(b"\n") for each in output if each.count <= count)
    first = max(min(earlier, total) - BEFORE, 0)
    last = min(earlier + AFTER, total)
    lines = _lines(session, output, first, last)
    known = hidden.lines(each.text for each in lines)
    shown = tuple(
        PrintedLine(each.number, text, each.stream, each.instant) for each, text in zip(lines, known, strict=True)
    )
    return PrintedPart(shown, first, total - last)


def _lines(session: Session, output: Sequence[Output], first: int, last: int) -> list[PrintedLine]:
    """Return the lines from the index `first` up to `last`."""
    found: list[PrintedLine] = []
    number = 0
    begun = b""
    each = None
    for each in output:
        newlines = each.data.count(b"\n")
        if number + newlines < first:
            # What begins behind the last newline goes on in the next piece.
            number, begun = number + newlines, (each.data if newlines else begun + each.data)[-LONGEST:]
            begun = begun.rpartition(b"\n")[2]
            continue
        parts = each.data.split(b"\n")
        for part in parts[:-1]:
            if first <= number < last:
                found.append(_line(session, number, (begun + part[:LONGEST])[:LONGEST], each))
            number, begun = number + 1, b""
        begun = (begun + parts[-1][:LONGEST])[:LONGEST]
        if number >= last:
            return found
    if begun and each is not None and first <= number < last:
        found.append(_line(session, number, begun, each))
    return found


def _line(session: Session, number: int, data: bytes, each: Output) -> PrintedLine:
    moment = session.index.moment(max(each.line, 1))
    text = data.decode("utf-8", "replace").expandtabs(8)
    return PrintedLine(number + 1, text, each.stream, Instant(texts.moment_text(moment), max(each.line, 1)))
