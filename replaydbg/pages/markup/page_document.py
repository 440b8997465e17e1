"""The whole page: one file without references to others, at most LARGEST bytes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from replaydbg.pages.facts.hidden_texts import HiddenTexts
from replaydbg.pages.facts.page_facts import PageFacts
from replaydbg.pages.markup.call_drawing import calls_part
from replaydbg.pages.markup.drawings import heap_part, timeline_svg
from replaydbg.pages.markup.escaping import PageLimits, PageText
from replaydbg.pages.markup.page_style import PAGE_SCRIPT, page_style
from replaydbg.pages.markup.run_part import commands_part, events_part, group_part, output_part, writes_part
from replaydbg.pages.markup.stack_part import failure_part, stack_part

LARGEST = 300_000
"""Bytes of a page."""
_FACTORS = (1.0, 0.5, 0.25, 0.1, 0.02)
"""Shares of the limits that are tried one after the other, until the page is small enough."""


class _Part(NamedTuple):
    name: str
    """Its id."""
    title: str
    content: str


def failure_page(facts: PageFacts, hidden: HiddenTexts) -> bytes:
    """Return the page; texts in it have the secrets masked that `hidden` knows."""
    for factor in _FACTORS:
        page = PageText(hidden, PageLimits().scaled(factor), has_timeline=facts.timeline is not None)
        data = _document(facts, page).encode("utf-8", "backslashreplace")
        if len(data) <= LARGEST:
            break
    return data


def _document(facts: PageFacts, page: PageText) -> str:
    parts = [each for each in _parts(facts, page) if each.content]
    sections = "\n".join(
        f'<section aria-labelledby="{each.name}">\n<h2 id="{each.name}">{each.title}</h2>\n{each.content}\n</section>'
        for each in parts
    )
    links = "\n".join(f'<li><a href="#{each.name}">{each.title}</a></li>' for each in parts)
    style, script = page_style(), PAGE_SCRIPT
    calm = "" if facts.kind == "Failure" else ' class="calm"'
    title = page.text(f"{facts.title} in {facts.name}", 160)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="replaydbg">
<title>{title}</title>
<style>{style}</style>
</head>
<body{calm}>
<a class="skip" href="#{parts[0].name if parts else "top"}">Skip to the content</a>
<header id="top">
{_header(facts, page)}
<nav aria-label="Parts of this page"><ul>
{links}
</ul></nav>
</header>
<main>
{sections}
</main>
<footer><p>Made by replaydbg from the recording {page.text(facts.name)}. A moment such as 120:35 is an event of the run
and the lines after it; every command takes it: <code>--at 120:35</code>.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _policy(style: str, script: str) -> str:
    """Return a policy that forbids everything but this style and this script; nothing can be fetched or sent."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _header(facts: PageFacts, page: PageText) -> str:
    lines = [f'<p class="kind">{page.text(facts.kind)} in {page.text(facts.name, 200)}</p>']
    lines.append(f"<h1>{page.text(facts.title, min(page.limits.value, 300))}</h1>")
    if facts.place:
        moment = f" at {page.text(facts.instant.text)}" if facts.instant is not None else ""
        lines.append(f'<p class="place-line">{page.text(facts.place)}{moment}</p>')
    if facts.message:
        lines.append(f"<details open><summary>Message</summary><pre>{page.long_text(facts.message)}</pre></details>")
    for kind, text in facts.exceptions[1 if facts.kind == "Failure" else 0 :][:5]:
        lines.append(f"<p>While handling {page.text(f'{kind}: {text}')}</p>")
    lines += [f'<p class="warning">{page.text(each, 1000)}</p>' for each in facts.warnings]
    rows = "\n".join(f"<dt>{page.text(label)}</dt><dd>{page.text(text, 600)}</dd>" for label, text in facts.facts)
    lines.append(f"<dl>\n{rows}\n</dl>")
    lines += [f'<p><code class="command">{page.text(each.text, 500)}</code></p>' for each in facts.commands[:1]]
    return "\n".join(lines)


def _parts(facts: PageFacts, page: PageText) -> Iterator[_Part]:
    is_failure = facts.kind == "Failure"
    yield _Part("failure", "Source" if not is_failure else "Where it failed", failure_part(facts, page))
    yield _Part("writes", "Who wrote the values", writes_part(facts, page))
    # Of the line that fails, what it prints is mostly the traceback.
    count = facts.instant.count - is_failure if facts.instant is not None else 0
    output = output_part(facts.printed, count, page) if facts.printed is not None else ""
    if facts.timeline is not None:
        yield _Part("timeline", "Timeline", timeline_svg(facts.timeline, facts.instant, page))
    if facts.calls is not None:
        yield _Part("calls", "Calls over time", calls_part(facts.calls, facts.instant, page))
    yield _Part("output", "Output", output)
    yield _Part("stack", "Stack", stack_part(facts, page))
    if facts.heap is not None:
        yield _Part("heap", "Heap growth", heap_part(facts.heap, page))
    if facts.group is not None:
        yield _Part("processes", f"Processes of {page.text(facts.group.name)}", group_part(facts.group, page))
    yield _Part("events", "Last events", events_part(facts, page))
    yield _Part("commands", "Open the recording", commands_part(facts.commands, page))
