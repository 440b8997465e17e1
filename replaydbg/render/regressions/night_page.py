"""The result of `replaydbg ci` as one HTML page, which needs no network and no scripts.

Texts of recordings and commits come from anybody: all are escaped, and the page forbids everything but its own style.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from replaydbg.commits.question import Commit
from replaydbg.events.show import printable
from replaydbg.regressions.code_verdicts import CodeState, CommitVerdict
from replaydbg.regressions.night import CaseHistory, NightReport
from replaydbg.render.regressions.night_text import point_rows, reason, regression_text, shortened, summary_lines

_SIGNS = {CodeState.FAILS: "✗", CodeState.PASSES: "✓", CodeState.DIFFERS: "≠", CodeState.UNKNOWN: "?"}
_KINDS = {CodeState.FAILS: "fails", CodeState.PASSES: "passes", CodeState.DIFFERS: "differs", CodeState.UNKNOWN: "open"}

_STYLE = """
:root { color-scheme: light dark; --text: #1c1e21; --back: #fff; --soft: #f1f2f4; --line: #d5d8dc; --quiet: #5b6168;
  --fails: #b3261e; --passes: #1a7f37; --differs: #8a5a00; --open: #5b6168; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --back: #16181b; --soft: #22252a; --line: #3a3f46;
  --quiet: #a2a9b1; --fails: #ff8a80; --passes: #6fdd8b; --differs: #f0c05a; --open: #a2a9b1; } }
body { margin: 2rem; font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { padding: .25rem .6rem; border: 1px solid var(--line); text-align: left;
  vertical-align: top; overflow-wrap: anywhere; } thead th { background: var(--soft); }
code, .commit { font-family: ui-monospace, monospace; font-size: .9em; }
.scroll { overflow-x: auto; } .matrix th.commit { writing-mode: vertical-rl; font-weight: normal; }
.matrix td.verdict { text-align: center; padding: .25rem .4rem; }
.fails { color: var(--fails); } .passes { color: var(--passes); } .differs { color: var(--differs); }
.open, .quiet { color: var(--quiet); } .changed { outline: 2px solid currentColor; outline-offset: -2px; }
.alarm { color: var(--fails); font-weight: 600; }
"""


def night_page(report: NightReport) -> str:
    """Return the page."""
    first, last = report.commits[0], report.commits[-1]
    title = f"Recordings at {first.short} to {last.short}"
    summary = summary_lines(report)
    alarms = "".join(
        f'<p class="alarm">{_text(regression_text(each, report))}</p>\n'
        for each in report.histories
        if each.is_regression
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{_text(title)}</h1>
<p>{_text(summary[0])}.</p>
{alarms}<p class="quiet">{_text(summary[-1])}. Last commit: {_text(last.subject)} ({_text(last.date)}).</p>
{_notes(report.notes)}{_changes(report)}{_matrix(report)}{_cases(report)}</body>
</html>
"""


def _text(text: str) -> str:
    """Return a text of anybody for the page; also in the value of an attribute."""
    return escape(printable(text), quote=True)


def _notes(notes: Iterable[str]) -> str:
    return "".join(f'<p class="quiet">{_text(note)}</p>\n' for note in notes)


def _changes(report: NightReport) -> str:
    rows = "".join(
        f'<tr><td class="commit">{_text(commit)}</td><td>{_text(change)}</td><td>{_text(names)}</td>'
        f"<td>{_text(subject)}</td></tr>\n"
        for commit, change, names, subject in point_rows(report)
    )
    if not rows:
        return "<h2>Changes</h2>\n<p>No commit changed the verdict about a recording.</p>\n"
    head = "<tr><th>commit</th><th>change</th><th>recordings</th><th>subject</th></tr>"
    return f"<h2>Changes</h2>\n<table><thead>{head}</thead>\n<tbody>{rows}</tbody></table>\n"


def _matrix(report: NightReport) -> str:
    tested = [each for each in report.histories if each.verdicts]
    if not tested:
        return ""
    head = "".join(
        f'<th class="commit" title="{_text(_about(commit))}">{_text(commit.short)}</th>' for commit in report.commits
    )
    rows = "".join(_matrix_row(each, report) for each in tested)
    legend = ", ".join(f'<span class="{_KINDS[each]}">{_SIGNS[each]}</span> {each.value}' for each in CodeState)
    return (
        f'<h2>Verdicts</h2>\n<p>{legend}; a frame marks a change.</p>\n<div class="scroll"><table class="matrix">'
        f"<thead><tr><th>recording</th>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    )


def _about(commit: Commit) -> str:
    return f"{commit.subject} ({commit.author}, {commit.date})"


def _matrix_row(history: CaseHistory, report: NightReport) -> str:
    changes = {point.commit for point in history.points}
    cells = "".join(
        _cell(history.verdicts[commit.name], is_changed=commit.name in changes) for commit in report.commits
    )
    return f"<tr><th>{_text(history.case.name)}</th>{cells}</tr>\n"


def _cell(verdict: CommitVerdict, *, is_changed: bool) -> str:
    kind = f"verdict {_KINDS[verdict.state]}{' changed' if is_changed else ''}"
    about = _text(f"{verdict.state.value}: {verdict.why}")
    return f'<td class="{kind}" title="{about}">{_SIGNS[verdict.state]}</td>'


def _cases(report: NightReport) -> str:
    rows = "".join(
        f"<tr><td>{_text(each.case.name)}</td><td><code>{_text(shortened(each.case.command))}</code></td>"
        f'<td>{_text(each.case.what)}</td><td class="{_KINDS[each.now]}">{_text(each.now.value)}</td>'
        f"<td>{_text(reason(each, report))}</td></tr>\n"
        for each in report.histories
    )
    head = "<tr><th>recording</th><th>command</th><th>recorded failure</th><th>now</th><th>reason</th></tr>"
    return f"<h2>Recordings</h2>\n<table><thead>{head}</thead>\n<tbody>{rows}</tbody></table>\n"
