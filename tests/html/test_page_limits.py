"""However much there is, a page has at most its size, and says what it lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.pages.facts.hidden_texts import HiddenTexts
from replaydbg.pages.facts.page_facts import (
    CallBar,
    CallChart,
    CalledFunction,
    CallStrip,
    GroupFacts,
    HeapCourse,
    HeapPoint,
    Instant,
    OpeningCommand,
    PageFacts,
    PrintedLine,
    PrintedPart,
    ProcessRow,
    ShownVariable,
    SourceLine,
    StackFrame,
    Timeline,
    TimelineBar,
    WriteStep,
)
from replaydbg.pages.markup.page_document import LARGEST, failure_page
from tests.html.read_page import ReadPage

LONG = "\u202e<&'\">" * 500


def full_page(text: str, number: int) -> PageFacts:
    """Return a page on which everything is `text`, `number` times."""
    instants = [Instant(f"{each}:1", each) for each in range(1, number + 1)]
    pieces = ((0, 3, "keyword"),)
    lines = tuple(SourceLine(each, text, pieces, each, ((text, text),), each == 3) for each in range(1, 26))
    variables = tuple(ShownVariable(text, text, text) for _ in instants)
    frames = tuple(
        StackFrame(each, text, 3, text, text, is_library=False, source=lines, variables=variables)
        for each in range(number)
    )
    bar = TimelineBar(text, tuple((each, each + 1) for each in range(1, number)))
    calls = tuple(CallBar(each % 9, each, each + 1, text, text, is_library=False) for each in range(number))
    process = ProcessRow(1, text, text, text, is_shown=True, problem=text)
    return PageFacts(
        kind="Failure",
        title=text,
        message=f"{text}\n" * number,
        name=text,
        facts=((text, text),) * 20,
        place=text,
        instant=Instant("3:1", 3),
        warnings=(text,) * 5,
        frames=frames,
        exceptions=((text, text),) * number,
        writes=tuple(WriteStep(text, text, each, text, (text,) * 5, 1) for each in instants),
        writes_note=text,
        printed=PrintedPart(tuple(PrintedLine(each.count, text, 2, each) for each in instants), number, number),
        timeline=Timeline(1, number + 1, (bar,) * min(number, 24), ((instants[0], text),) * 60, 3),
        calls=CallChart(
            1,
            number + 1,
            (CallStrip(text, calls, 9),) * 6,
            3,
            (CalledFunction(text, text, number, number),) * 12,
            number,
            text,
        ),
        heap=HeapCourse(tuple(HeapPoint(each, 1, 1) for each in instants), text, ((text, text, (1, 2), (1, 2)),) * 16),
        group=GroupFacts(text, (process,) * number, 7, (b"<svg>" + b" " * 10**6 + b"</svg>",), text),
        events=((text,) * 6,) * 40,
        commands=(OpeningCommand(text, text),) * 7,
    )


@pytest.mark.parametrize("number", [1, 60, 300])
@pytest.mark.parametrize("text", ["x", LONG], ids=["short", "long"])
def test_a_page_is_never_larger_than_its_limit(text: str, number: int) -> None:
    data = failure_page(full_page(text, number), HiddenTexts([]))

    assert len(data) <= LARGEST
    ReadPage(data.decode()).check()


@settings(max_examples=30, deadline=None)
@given(text=st.text(st.characters(), max_size=40), number=st.integers(1, 4))
def test_any_text_makes_a_valid_page(text: str, number: int) -> None:
    data = failure_page(full_page(text, number), HiddenTexts([]))

    ReadPage(data.decode()).check()


def test_what_does_not_fit_is_counted() -> None:
    page = ReadPage(failure_page(full_page("x", 300), HiddenTexts([])).decode())

    assert "240 further frames are not on this page." in page.text
    assert "240 more variables are not on this page." in page.text
    assert "earlier lines are not on this page." in page.text
    assert "The space-time diagram is too large for this page" in page.text


def test_a_page_without_anything_is_a_page() -> None:
    facts = replace(full_page("x", 1), frames=(), writes=(), writes_note="", printed=None, timeline=None, heap=None)

    ReadPage(failure_page(replace(facts, group=None, events=(), commands=()), HiddenTexts([])).decode()).check()
