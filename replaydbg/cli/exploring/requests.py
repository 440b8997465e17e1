"""`replaydbg requests`: list the requests that the middleware of `replaydbg.web` has marked in a recording."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from replaydbg.cli.common.output import add_json, add_recording, group_or_recording, open_named, print_json, print_table
from replaydbg.errors import ReplaydbgError
from replaydbg.events.records import Event
from replaydbg.events.show import printable
from replaydbg.events.stops import StopReason
from replaydbg.log.group import read_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.remote.address import is_address
from replaydbg.store.directory import member_path
from replaydbg.store.removing import writer_in
from replaydbg.web import BEGUN, ENDED, FAILED

_KINDS = (BEGUN, ENDED, FAILED)
_COLUMNS = ("process", "#", "request", "result", "begin", "end")


@dataclass(slots=True)
class RequestRow:
    """One request. Strangers have chosen its words."""

    process: int
    """The number of the process in its group; 1: it is the only one."""
    number: int
    """Its number in this process."""
    request: str
    """Method and path."""
    begin: str
    """The moment at which it began, such as `4711:0`."""
    result: str = ""
    """Its status, or the type of the exception; empty: it never ended."""
    end: str = ""
    """The moment at which it ended; empty: it never ended."""
    has_failed: bool = True
    """Whether it failed, or never ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument(
        "--failed",
        action="store_true",
        help="only requests that failed: status 500 or higher, an exception, no status, or no end",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """List the requests; return 1 if the recording of a process cannot be read."""
    rows: list[RequestRow] = []
    problems: list[str] = []
    incomplete: list[str] = []
    for recording in _recordings(args.recording, problems):
        with recording:
            rows += requests_in(recording)
            incomplete += _lacks(recording)
    shown = [each for each in rows if each.has_failed or not args.failed]
    if args.json:
        print_json({"requests": [asdict(each) for each in shown], "problems": problems, "incomplete": incomplete})
        return 1 if problems else 0
    for problem in (*problems, *incomplete):
        print(f"replaydbg: {printable(problem)}", file=sys.stderr)
    if not shown:
        print(f"replaydbg: {_reason_for_none(printable(args.recording), len(rows))}", file=sys.stderr)
    print_table(_COLUMNS, map(_cells, shown), right=("process", "#"))
    return 1 if problems else 0


def _reason_for_none(name: str, count: int) -> str:
    """Return why no request is shown, of `count`."""
    if count:
        return f"none of the requests in {name} failed ({count:,} request{'s' * (count != 1)})."
    return f"{name} has no requests: only an application with the middleware of replaydbg.web marks them."


def _recordings(name: str, problems: list[str]) -> Iterator[Recording]:
    """Yield the recordings of the processes that a name means: all of a group, or one."""
    directory, path = (None, None) if is_address(name) else group_or_recording(name)
    if directory is None or path != directory:
        yield open_named(name)
        return
    for each in read_group(directory).processes:
        if each.recording is None:
            continue
        try:
            yield open_recording(member_path(directory, each.number))
        except ReplaydbgError as error:
            problems.append(f"process {each.number}: {error}")


def _lacks(recording: Recording) -> list[str]:
    """Return a sentence if the recording ends before its program did; what that became has a recording of its own."""
    if recording.is_live and writer_in(recording.path) is not None:
        return [f"{recording.name} is still being recorded: what has not ended in it may end yet."]
    stopped = recording.log_header.stopped if recording.log_header is not None else StopReason.NOT_STOPPED
    if stopped.cause is None or stopped in (StopReason.IMAGE_REPLACED, StopReason.CONTINUED):
        return []
    return [
        f"{recording.name} ends before its program did: {stopped.cause}. "
        "Later requests are missing, and when these ended if they had not."
    ]


def requests_in(recording: Recording) -> list[RequestRow]:
    """Return the requests of one process, in the order in which they began."""
    process = recording.header.process or 1
    found: dict[str, RequestRow] = {}
    for entry in recording.selected_events("replaydbg.moment".__eq__):
        noted = _noted(entry.outcome, process) if isinstance(entry, Event) else None
        if not isinstance(entry, Event) or noted is None:
            continue
        (kind, text), moment = noted, f"{entry.number}:0"
        number, _, request = text.partition(" ")
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            continue  # the program has noted something else by this name
        if kind == BEGUN:
            found[number] = RequestRow(process, int(number), request, moment)
        elif (row := found.get(number)) is not None and request.startswith(f"{row.request} "):
            row.result, row.end, row.has_failed = request[len(row.request) + 1 :], moment, kind == FAILED
    return list(found.values())


def _noted(outcome: object, process: int) -> tuple[str, str] | None:
    """Return the kind and the text that were noted, if a request was, by this process and not by one that forked it.

    Anybody may have written the recording.
    """
    if not isinstance(outcome, tuple) or len(outcome) != 3 or not all(isinstance(each, str) for each in outcome):
        return None
    place, kind, text = map(str, outcome)
    is_own = process == 1 or place.partition(":")[0].rpartition("/")[2] == str(process)
    return (kind, text) if is_own and kind in _KINDS else None


def _cells(row: RequestRow) -> tuple[str, ...]:
    result = row.result or "never ended"
    return str(row.process), str(row.number), printable(row.request), printable(result), row.begin, row.end
