"""The stack as HTML: each frame of the program's own code with its source, values beside lines, and variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from replaydbg.pages.facts.page_facts import PageFacts, SourceLine, StackFrame
from replaydbg.pages.markup.escaping import PageText

_KINDS = {"number": "number-literal"}
"""Classes of coloured pieces whose names mean something else here."""


def failure_part(facts: PageFacts, page: PageText) -> str:
    """Return the source around the position, with values; empty: there is no frame."""
    shown = next((each for each in facts.frames if each.number == facts.shown_frame), None)
    if shown is None:
        return ""
    return _source(shown, page) + _variables(shown, page)


def stack_part(facts: PageFacts, page: PageText) -> str:
    """Return the frames, innermost first; empty: there is none."""
    frames = facts.frames[: page.limits.frames]
    if not frames:
        return ""
    left_out = facts.more_frames + len(facts.frames) - len(frames)
    found = []
    for name, group in groupby(frames, key=lambda each: _together(each, facts, page)):
        some = list(group)
        if name and len(some) > 3:
            items = "".join(f"<li>{_heading(each, page)}</li>" for each in some)
            found.append(
                f"<li><details><summary>{len(some)} frames of {page.text(name)}</summary>"
                f'<ol class="frames">{items}</ol></details></li>'
            )
        else:
            found += [f"<li>{_frame(each, facts, page)}</li>" for each in some]
    more = f"<p>{left_out:,} further frames are not on this page.</p>" if left_out else ""
    return f'<ol class="frames">\n{chr(10).join(found)}\n</ol>{more}'


def _together(frame: StackFrame, facts: PageFacts, page: PageText) -> str:
    """Return what a frame has in common with others, behind which it can be hidden; empty: nothing."""
    if frame.number == facts.shown_frame:
        return ""
    return "libraries" if frame.is_library else "" if _has_details(frame, facts, page) else frame.function


def _has_details(frame: StackFrame, facts: PageFacts, page: PageText) -> bool:
    # Outer frames are rarely needed, and each takes some KB.
    return bool(frame.source) and frame.number <= facts.shown_frame + page.limits.detailed


def _heading(frame: StackFrame, page: PageText) -> str:
    text = f' <code class="line">{page.text(frame.text, 160)}</code>' if frame.text else ""
    place = f"{page.text(frame.file)}:{frame.line}"
    return f'<b>{page.text(frame.function)}</b> <span class="place">{place}</span>{text}'


def _frame(frame: StackFrame, facts: PageFacts, page: PageText) -> str:
    if frame.number == facts.shown_frame:
        return f'<a href="#failure">{_heading(frame, page)}</a> (above)'
    if not _has_details(frame, facts, page):
        return _heading(frame, page)
    return (
        f"<details><summary>{_heading(frame, page)}</summary>{_source(frame, page)}{_variables(frame, page)}</details>"
    )


def _source(frame: StackFrame, page: PageText) -> str:
    if not frame.source:
        return f"<p>The source of {page.text(frame.file)} is not available.</p>"
    around = page.limits.around
    lines = [each for each in frame.source if abs(each.number - frame.line) <= around]
    rows = "\n".join(_line(each, page) for each in _without_indent(lines))
    caption = f"{page.text(frame.file)}, lines {lines[0].number} to {lines[-1].number}"
    return f'<figure><figcaption>{caption}</figcaption><ol class="source">\n{rows}\n</ol></figure>'


def _without_indent(lines: Sequence[SourceLine]) -> Iterator[tuple[SourceLine, int]]:
    """Yield lines with the number of spaces that all of them begin with."""
    common = min((len(each.text) - len(each.text.lstrip(" ")) for each in lines if each.text.strip()), default=0)
    for each in lines:
        yield each, common


def _line(numbered: tuple[SourceLine, int], page: PageText) -> str:
    line, indent = numbered
    kind = "here" if line.is_here else "never" if line.hits == 0 else ""
    times = f"{line.hits:,}&times;" if line.hits > 0 else "&ndash;" if line.hits == 0 else ""
    hits = (
        f'<span class="hits" title="{_hits_text(line.hits)}">{times}</span>' if times else '<span class="hits"></span>'
    )
    mark = '<span class="mark" aria-hidden="true">▶</span>' if line.is_here else '<span class="mark"></span>'
    hidden = '<span class="aside">executed here: </span>' if line.is_here else ""
    values = "".join(
        f'<span class="value"><var>{page.text(name, page.limits.inline)}</var> = '
        f"<samp>{page.text(value, page.limits.inline)}</samp></span> "
        for name, value in line.values
    )
    beside = f'<span class="values">{values.strip()}</span>' if values else ""
    return (
        f'<li{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{mark}<span class="number">{line.number}</span>{hits}'
        f'<span class="content">{hidden}<code>{_code(line, indent, page)}</code>{beside}</span></li>'
    )


def _hits_text(hits: int) -> str:
    return "never ran" if not hits else "ran once" if hits == 1 else f"ran {hits:,} times"


def _code(line: SourceLine, indent: int, page: PageText) -> str:
    most = max(page.limits.value // 2, 40)
    text = line.text[:most]
    pieces: list[tuple[str, str]] = []
    at = indent if not text[:indent].strip() else 0
    for first, last, style in [*line.spans, (len(text), len(text), "")]:
        if last > len(text) or first < at:
            continue
        pieces += [("", text[at:first]), (style, text[first:last])]
        at = last
    shown = ""
    for style, some in groupby((each for each in pieces if each[1]), key=lambda each: each[0]):
        code = page.text("".join(each for _, each in some), most)
        shown += f'<span class="{_KINDS.get(style, style)}">{code}</span>' if style else code
    return shown + ("…" if len(line.text) > most else "")


def _variables(frame: StackFrame, page: PageText) -> str:
    if frame.problem:
        return f"<p>The variables cannot be shown: {page.text(frame.problem)}.</p>"
    shown = frame.variables[: page.limits.variables]
    if not shown:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{page.text(each.name, 80)}</th><td><samp>{page.text(each.text)}</samp></td>'
        f'<td class="type">{page.text(each.type, 80)}</td></tr>\n'
        for each in shown
    )
    number = len(frame.variables)
    more = f"<p>{number - len(shown)} more variables are not on this page.</p>" if number > len(shown) else ""
    return (
        f"<details><summary>{number} variable{'s' * (number != 1)} of {page.text(frame.function)}</summary>"
        f'<table class="variables"><thead><tr><th scope="col">name</th><th scope="col">value</th>'
        f'<th scope="col">type</th></tr></thead><tbody>{rows}</tbody></table>{more}</details>'
    )
