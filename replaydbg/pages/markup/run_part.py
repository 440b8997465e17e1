"""The run as HTML: who wrote what, output, events, processes, and commands."""

from __future__ import annotations

from replaydbg.pages.facts.page_facts import GroupFacts, OpeningCommand, PageFacts, PrintedPart, WriteStep
from replaydbg.pages.markup.escaping import PageText

_NOW = '<li class="now"><span></span><span>printed by this line, and later:</span></li>'


def writes_part(facts: PageFacts, page: PageText) -> str:
    """Return who wrote the values of the failing line, and what led to them; empty: nothing is known."""
    if not facts.writes and not facts.writes_note:
        return ""
    items = "\n".join(_write(each, page) for each in facts.writes[: page.limits.writes])
    note = f"<p>{page.text(facts.writes_note)}</p>" if facts.writes_note else ""
    return (f'<ol class="writes">\n{items}\n</ol>' if items else "") + note


def _write(step: WriteStep, page: PageText) -> str:
    headline = page.text(step.headline)
    if step.instant is not None:
        before, found, after = step.headline.partition(step.instant.text)
        moment = page.moment(step.instant, f"write of {step.expression}", "write")
        headline = f"{page.text(before)}{moment}{page.text(after)}" if found else f"{headline} {moment}"
    source = f'<code class="line">{page.text(step.source)}</code>' if step.source else ""
    details = "\n".join(page.text(each.removeprefix("  ")) for each in step.details[:12])
    pre = f'<pre class="details">{details}</pre>' if details else ""
    return f'<li class="depth-{min(step.depth, 4)}"><p>{headline}</p>{source}{pre}</li>'


def output_part(printed: PrintedPart, count: int, page: PageText) -> str:
    """Return the output up to the line `count` and after it, each line with its moment."""
    before = [each for each in printed.lines if each.instant.count <= count]
    after = printed.lines[len(before) :]
    shown = [*before[-page.limits.before :], *after[: page.limits.after]]
    if not shown:
        return "<p>The program wrote nothing to its standard streams.</p>"
    first = printed.before + len(before) - len(before[-page.limits.before :])
    last = printed.after + len(after) - len(after[: page.limits.after])
    rows = []
    is_past = False
    for each in shown:
        if each.instant.count > count and not is_past:
            is_past = True
            rows.append(
                '<li class="now"><span class="moment"></span><span>printed by this line, and later:</span></li>'
            )
        stream = '<span class="aside">stderr: </span>' if each.stream == 2 else ""
        kind = ' class="stderr"' if each.stream == 2 else ""
        moment = page.moment(each.instant, f"printed line {each.number:,}", "print")
        rows.append(f"<li{kind}>{moment}<span>{stream}<samp>{page.text(each.text)}</samp></span></li>")
    above = f"<p>{first:,} earlier lines are not on this page.</p>" if first else ""
    below = f"<p>{last:,} later lines are not on this page.</p>" if last else ""
    return f'{above}<ol class="output">\n{chr(10).join(rows)}\n</ol>{below}'


def events_part(facts: PageFacts, page: PageText) -> str:
    """Return the last events as a table; empty: there are none."""
    if not facts.events:
        return ""
    names = ("event", "time", "thread", "call", "outcome", "where")
    head = "".join(f'<th scope="col">{each}</th>' for each in names)
    rows = "\n".join(
        f"<tr>{''.join(f'<td>{page.text(cell, 120)}</td>' for cell in row)}</tr>"
        for row in facts.events[-page.limits.rows :]
    )
    return _scrolling("The last events", f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")


def group_part(group: GroupFacts, page: PageText) -> str:
    """Return the processes of a group, and the space-time diagram, if it is not too large."""
    drawing = next((each for each in group.drawings if len(each) <= page.limits.drawing), None)
    diagram = ""
    if drawing is not None:
        diagram = _scrolling("Space-time diagram", page.drawing(drawing))
    elif group.drawings:
        diagram = "<p>The space-time diagram is too large for this page: <code>replaydbg cut --svg</code> draws it.</p>"
    rows = "\n".join(
        f'<tr{" class=" + chr(34) + "shown" + chr(34) if each.is_shown else ""}><th scope="row">{each.number}</th>'
        f"<td>{page.text(each.how)}</td><td>{page.text(each.ended)}{' (this page)' if each.is_shown else ''}</td>"
        f"<td><code>{page.text(each.command, 160)}</code></td><td>{page.text(each.problem)}</td></tr>"
        for each in group.rows[: page.limits.rows]
    )
    more = group.more + max(len(group.rows) - page.limits.rows, 0)
    left_out = f"<p>{more:,} more processes are not on this page.</p>" if more else ""
    columns = ("process", "started as", "ended", "command", "note")
    head = "".join(f'<th scope="col">{each}</th>' for each in columns)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    note = f"<p>{page.text(group.note, 1000)}</p>" if group.note else ""
    return diagram + note + _scrolling("Processes", table) + left_out


def commands_part(commands: tuple[OpeningCommand, ...], page: PageText) -> str:
    """Return the commands that open the recording."""
    items = "\n".join(
        f'<li><code class="command">{page.text(each.text, 500)}</code><span>{page.text(each.purpose)}</span></li>'
        for each in commands
    )
    return f'<ul class="commands">\n{items}\n</ul>'


def _scrolling(label: str, content: str) -> str:
    """Return wide content in an element that can be scrolled with the keyboard."""
    return f'<section class="scroll" tabindex="0" aria-label="{label}">{content}</section>'
