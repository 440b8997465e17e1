"""The result of `bisect commits` as text and as Markdown."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path

from replaydbg.commits import CommitLook, CommitSearchResult
from replaydbg.commits.surroundings import Surroundings
from replaydbg.events.show import printable

COLUMNS = ("commit", "verdict", "seconds", "why", "subject")
_MOST = 20
"""Number of suspects, and of deviations of one replay, that are listed for people; further ones are only counted."""


def as_markdown(found: CommitSearchResult) -> str:
    """Return the result as Markdown for a pull request."""
    lines = [f"**{line}**" if not index else line for index, line in enumerate(_headline(found))]
    if found.stat:
        lines += ["", "```", found.stat, "```"]
    lines += ["", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row(found, look)) + " |" for look in found.looks]
    lines += [f"- {printable(note)}" for note in found.notes] and [
        "",
        *(f"- {printable(note)}" for note in found.notes),
    ]
    lines += ["", "```console", *(f"$ {command}" for command in reproduction_commands(found)), "```"]
    return "\n".join(lines)


def row(found: CommitSearchResult, look: CommitLook) -> list[str]:
    """Return the cells of one look at a commit, in the order of COLUMNS."""
    known = " (known)" if look.is_reused else ""
    subject = found.commits[look.commit].subject
    why = look.why if len(look.why) <= 100 else look.why[:97] + "..."
    return [look.commit[:10], look.verdict.value, f"{look.seconds:.1f}", printable(why) + known, printable(subject)]


def deviation_lines(found: CommitSearchResult) -> list[str]:
    """Return the deviations of the replay at each commit."""
    lines = []
    for look in found.looks:
        if look.liberties:
            lines += ["", f"Deviations of the replay at {look.commit[:10]}:"]
            lines += [f"  {printable(line)}" for line in look.liberties[:_MOST]]
            lines += [f"  and {len(look.liberties) - _MOST} more"] if len(look.liberties) > _MOST else []
    return lines


def _headline(found: CommitSearchResult) -> list[str]:
    culprit = found.culprit
    if culprit is not None:
        return [f"{culprit.short} is the first bad commit: {culprit.subject}", f"{culprit.author}, {culprit.date}"]
    lines = [range_reason(found)]
    lines += [f"- {commit.short} {commit.subject}" for commit in found.suspects[:_MOST]]
    return lines + ([f"- and {len(found.suspects) - _MOST} more"] if len(found.suspects) > _MOST else [])


def range_reason(found: CommitSearchResult) -> str:
    """Return why there is no single first bad commit."""
    return f"The first bad commit is one of these {len(found.suspects)}, which cannot be distinguished:"


def answer_lines(found: CommitSearchResult) -> list[str]:
    """Return the culprit, and what to do next."""
    return [*_culprit_lines(found), *_next(found)]


def _culprit_lines(found: CommitSearchResult) -> list[str]:
    culprit = found.culprit
    if culprit is None:
        return _headline(found)
    lines = [f"{culprit.name} is the first bad commit", f"Author: {culprit.author}", f"Date:   {culprit.date}"]
    return [*lines, "", f"    {culprit.subject}", "", *found.stat.splitlines()]


def _next(found: CommitSearchResult) -> list[str]:
    looks = len(found.looks)
    lines = ["", f"Tested {looks} commits, including both ends, to search {found.total}."]
    if found.passes_needed > 1:
        lines.append(f"A commit counted as good after {found.passes_needed} passing runs.")
    commands = reproduction_commands(found)
    return [*lines, "", "Reproduce it:", *(f"  {command}" for command in commands)]


def reproduction_commands(found: CommitSearchResult) -> list[str]:
    """Return command lines that show the failure of the first bad commit, and its cause."""
    bad, question = found.suspects[-1], found.question
    place = Path(tempfile.gettempdir(), f"{found.root.name}-{bad.short}")
    around = Surroundings(found.root, found.prefix, found.files)
    directory = shlex.quote(str(around.directory(place)))
    commands = []
    if found.bad_recording:
        commands.append(f"replaydbg debug {found.bad_recording}")
        if found.good_recording:
            commands.append(f"replaydbg bisect recordings {found.good_recording} {found.bad_recording}")
    commands.append(f"git worktree add --detach {shlex.quote(str(place))} {bad.name}")
    for path in question.taken_along:
        target = place / path.relative_to(found.root)
        commands.append(f"cp -r {shlex.quote(str(path))} {shlex.quote(str(target))}")
    if question.build:
        commands.append(f"cd {directory} && {question.build}")
    if question.replay is None:
        imports = around.environment(place).get("PYTHONPATH", "")
        settings = f"PYTHONPATH={shlex.quote(imports)} " if imports != os.environ.get("PYTHONPATH", "") else ""
        settings += f"PYTHONHASHSEED={question.hash_seed} " if question.hash_seed else ""
        record = f"replaydbg record -- {shlex.join(around.program(question.program, place))}"
        commands.append(f"cd {directory} && {settings}{record}")
    else:
        assert question.recorded_root is not None, question
        for path in found.untracked:
            target = place / path.relative_to(question.recorded_root)
            commands.append(f"cp {shlex.quote(str(path))} {shlex.quote(str(target))}")
        check = f" --expr {shlex.quote(question.check)}" if question.check else ""
        roots = shlex.quote(f"{question.recorded_root}={place}")
        commands.append(f"replaydbg check {shlex.quote(str(question.replay))} --source-root {roots}{check}")
    return commands
