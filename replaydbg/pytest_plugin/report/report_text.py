"""Texts about kept tests: the section of a report, a summary in Markdown, the list of all."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path

from replaydbg.classes import NamedTuple, replace
from replaydbg.log.hidden import masked_like
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.results import LeftBehind, Result, Written, Wrong, write_result
from replaydbg.store.private import open_private


def write(path: Path, text: str, mode: str = "w") -> None:
    """Write a text for people; undecodable parts, as of a file name, are escaped. Raises OSError."""
    with open_private(path, mode, errors="backslashreplace") as file:
        file.write(text)


def write_about(folder: Path, result: Result) -> bool:
    """Write the facts about a kept test beside its recording; return whether that succeeded.

    On a full disk the files written before stay.
    """
    try:
        hide = partial(masked_like, folder / shared_names.RECORDING)
        write_result(folder, result, hide)
        text = summary(result, str(folder)).encode("utf-8", "backslashreplace")
        write(folder / shared_names.SUMMARY, hide(text).decode())
    except OSError:
        return False
    return True


def size_text(size: int) -> str:
    """Return a size in bytes in human-readable form."""
    return f"{size / 1024:.0f} KiB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MiB"


def verified_text(result: Result) -> str:
    """Return whether a replay agreed, as text; or why there is nothing to replay."""
    if result.unwritten:
        return f"its recording could not be written: {result.unwritten}"
    if result.verified:
        alone = f", without {result.left_out:,} other test{'s' * (result.left_out != 1)}" if result.left_out else ""
        return f"verified: the whole replay matched{alone}"
    if result.verified is None:
        return f"not verified{f': {result.verification}' if result.verification else ''}"
    return f"the replay differed: {result.verification}"


def leftovers_text(result: Result) -> str:
    """Return whether it depends on earlier tests, as text; empty if this is unknown or irrelevant."""
    if not result.leftovers:
        return ""
    return f"depends on state left by earlier tests; without them: {result.leftovers}"


def left_behind_lines(result: Result) -> list[str]:
    """Return what earlier tests left behind as lines, and the command that runs the fewest tests."""
    lines = [left_behind_text(each) for each in result.left_behind]
    if result.reproduced_by:
        lines.append(f"fails in the same way with these tests: {reproducing_command(result)}")
    return lines


def left_behind_text(left: LeftBehind) -> str:
    """Return a value that was left behind as a line."""
    value = f"= {left.value}" if left.value else "is missing"
    return f"{left.name} {value}  left by {left.test} at {left.moment}  {left.where}  {left.source}"


def reproducing_command(result: Result) -> str:
    """Return the command that runs the fewest tests with which the test fails in the same way."""
    return shlex.join(["pytest", *result.reproduced_by])


def processes_text(result: Result, folder: str) -> str:
    """Return how many processes of a test are recorded, with the command that lists them."""
    many = "process that it started is" if result.processes == 1 else "processes that it started are"
    path = shlex.quote(os.path.join(folder, shared_names.PROCESSES))  # noqa: PTH118
    return f"{result.processes:,} {many} recorded: replaydbg ps {path}"


def command(folder: str) -> str:
    """Return the command that opens the recording in `folder`."""
    return f"replaydbg debug {shlex.quote(os.path.join(folder, shared_names.RECORDING))}"  # noqa: PTH118


def replay_command(folder: str) -> str:
    """Return the command that verifies the recording in `folder`."""
    return f"replaydbg replay {shlex.quote(os.path.join(folder, shared_names.RECORDING))}"  # noqa: PTH118


def bisect_command(folder: str) -> str:
    """Return the command that repeats the bisection of the recording in `folder`."""
    return f"replaydbg bisect snapshots {shlex.quote(os.path.join(folder, shared_names.RECORDING))}"  # noqa: PTH118


def section(result: Result, folder: str, *, is_first: bool = True) -> str:
    """Return the section of a report; the examination is about the test's first failure."""
    if result.unwritten:
        return f"{folder}: {verified_text(result)}"
    path = os.path.join(folder, shared_names.RECORDING)  # noqa: PTH118
    lines = [f"{path} ({size_text(result.size)}, {result.events:,} events), {verified_text(result)}"]
    lines += [processes_text(result, folder)] if result.processes else []
    lines += [leftovers_text(result)] if result.leftovers else []
    lines += left_behind_lines(result)
    if not is_first:
        return "\n".join([*lines, "analysis: see this test's first failure", command(folder)])
    if result.verified is None:
        lines.append(f"verify it with: {replay_command(folder)}")
    lines += [written_text(each) for each in result.writes]
    if result.wrong is not None:
        lines += [*wrong_lines(result.wrong), bisect_command(folder)]
    if result.problem:
        lines.append(result.problem)
    lines += page_lines(result, folder)
    return "\n".join([*lines, command(folder)])


def page_lines(result: Result, folder: str) -> list[str]:
    """Return where the page about the failure is, or why there is none, if one was wanted."""
    if result.page:
        return [f"page: {os.path.join(folder, result.page)}"]  # noqa: PTH118
    return [f"no page: {result.no_page}"] if result.no_page else []


def unfinished(result: Result, seconds: float) -> Result:
    """Return the result of a test whose examination was not completed within `seconds`, with that reason."""
    limit = f"within {seconds:g} s (--replaydbg-wait)"
    if result.verified is None:
        return replace(result, verification=f"not analysed {limit}")
    return replace(result, problem=result.problem or f"analysis not finished {limit}")


def unverified_text(number: int, total: int) -> str:
    """Return the text about recordings that were not analysed in this run, with the commands to do it later."""
    if not number:
        return ""
    return (
        f"{number:,} of {total:,} recordings were not analysed. Verify one with `replaydbg replay REC`, or open it at "
        "the failure with `replaydbg debug REC`; there `why NAME` finds the last write."
    )


def nothing_text(folder: str, seconds: float, reason: str) -> str:
    """Return the text for a test that was to be kept, but has no result within that time, or will have none."""
    if reason:
        return f"{folder}: its recording could not be written: {reason}"
    return f"{folder}: its recording was not finished within {seconds:g} s (--replaydbg-wait)"


def unreadable_text(folder: str, reason: str) -> str:
    """Return the text for a test whose result cannot be read."""
    return f"{folder}: its {shared_names.META} cannot be read: {reason}"


def written_text(written: Written) -> str:
    """Return a last write as a line."""
    return f"{written.name} = {written.value}  written at {written.moment}  {written.where}  {written.source}"


def wrong_lines(wrong: Wrong) -> list[str]:
    """Return the result of a bisection as lines."""
    return [
        f"{wrong.what}: after {wrong.moment}  {wrong.where}  {wrong.source}",
        *(f"  {each}" for each in wrong.values),
    ]


def summary(result: Result, folder: str) -> str:
    """Return `summary.md`."""
    lines = [f"# {_escaped(result.nodeid)}", ""]
    attempt = f", attempt {result.attempt + 1}" if result.attempt else ""
    lines += [f"{result.outcome}{attempt}; hash seed {result.hash_seed}", ""]
    failure = result.failure
    if failure is not None:
        what = f"`{failure.type}`" if failure.type else "no exception,"
        lines += [f"In {failure.phase}: {what} at {failure.own_file}:{failure.own_line}", ""]
        lines += ["```", *failure.message.splitlines(), "```", ""]
    if result.unwritten:
        return "\n".join([*lines, f"{_escaped(verified_text(result))}.", ""])
    lines += [
        f"`{shared_names.RECORDING}`: {size_text(result.size)}, {result.events:,} events; {verified_text(result)}.",
        "",
    ]
    if result.processes:
        lines += [f"{_escaped(processes_text(result, folder))}", ""]
    if result.leftovers:
        lines += [f"{_escaped(leftovers_text(result))}", ""]
    if result.left_behind or result.reproduced_by:
        lines += ["```", *left_behind_lines(result), "```", ""]
    if result.writes:
        lines += ["| name | value | written at | by |", "|---|---|---|---|"]
        for each in result.writes:
            name, value, where, source = (_cell(text) for text in (each.name, each.value, each.where, each.source))
            lines.append(f"| `{name}` | `{value}` | {each.moment} {where} | `{source}` |")
        lines.append("")
    if result.wrong is not None:
        lines += ["Bisected:", "", "```", *wrong_lines(result.wrong), "```", ""]
        lines += [f"For details: `{bisect_command(folder)}`", ""]
    if result.page:
        lines += [f"The failure as a page: [{result.page}]({result.page})", ""]
    lines += ["Open it at the failure and step backwards from there:", "", "```", command(folder), "```", ""]
    return "\n".join(lines)


_VERIFIED = {True: "yes", False: "**no**", None: "not tried"}


class Passed(NamedTuple):
    """A test that did not fail, but whose recording is kept."""

    directory: str
    """Its name, in the directory of all results."""
    outcome: str
    """`passed` or `skipped`."""
    nodeid: str
    """Its pytest node id."""


def index(failed: list[tuple[str, Result]], passed: list[Passed], directory: str) -> str:
    """Return the list of kept tests in Markdown: those that failed with their directories; `directory` contains all."""
    lines = ["# Recordings of tests", ""]
    if failed:
        lines += ["| test | outcome | recording | size | verified |", "|---|---|---|---|---|"]
    for folder, each in failed:
        verified = "no recording" if each.unwritten else _VERIFIED[each.verified]
        path = os.path.join(folder, shared_names.RECORDING)  # noqa: PTH118
        lines.append(
            f"| {_cell(each.nodeid)} | {each.outcome} | `{_cell(path)}` | {size_text(each.size)} | {verified} |"
        )
    if passed:
        lines += ["", "| test | outcome | recording |", "|---|---|---|"]
    for it in passed:
        path = os.path.join(directory, it.directory, shared_names.RECORDING)  # noqa: PTH118
        lines.append(f"| {_cell(it.nodeid)} | {it.outcome} | `{_cell(path)}` |")
    first = failed[0][0] if failed else os.path.join(directory, passed[0].directory)  # noqa: PTH118
    return "\n".join([*lines, "", f"Open one with `{command(first)}`.", ""])


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())


def _escaped(text: str) -> str:
    return text.replace("\n", " ").replace("<", "&lt;")
