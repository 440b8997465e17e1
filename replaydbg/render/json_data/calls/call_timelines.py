"""All calls of functions of a run for two viewers, as JSON: the Perfetto UI, and speedscope.

Both show time from left to right. Here that is the run's lines: a microsecond is a line. How long a line took in the
recorded run is not known.

Formats: Perfetto reads the Trace Event Format of Chromium (complete events, `"ph": "X"`); speedscope its own
(https://www.speedscope.app/file-format-schema.json), with evented profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from replaydbg.classes import dataclass
from replaydbg.engine.reports import CalledCode, FunctionCall
from replaydbg.events.show import printable
from replaydbg.render.json_data.json_object import JsonObject


@dataclass(frozen=True, slots=True)
class CallTimeline:
    """The calls of a run."""

    name: str
    """Of the recording."""
    calls: Sequence[FunctionCall]
    """In the order in which they began."""
    threads: Mapping[int, str]
    """Names, by lane."""
    total: int
    """Lines of the run: where calls end that have not ended."""
    moment: Callable[[int], str]
    """The moment at a count of lines, in words."""
    file: Callable[[str], str]
    """How a path is shown."""

    def end(self, call: FunctionCall) -> int:
        """Return the count of lines at the end of a call."""
        return max(call.ended or self.total, call.begun)

    def thread(self, lane: int) -> str:
        """Return the name of a thread."""
        return printable(self.threads.get(lane, "")) or f"thread {lane}"

    def place(self, code: CalledCode) -> str:
        """Return where a function is written."""
        return f"{self.file(code.file)}:{code.line}"


def perfetto(timeline: CallTimeline) -> JsonObject:
    """Return the calls as complete events, each with its moment."""
    lanes = sorted({call.lane for call in timeline.calls})
    names: list[JsonObject] = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": lane + 1, "args": {"name": timeline.thread(lane)}}
        for lane in lanes
    ]
    process: JsonObject = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": printable(timeline.name)}}
    return {
        "traceEvents": [process, *names, *(_complete(timeline, call) for call in timeline.calls)],
        "displayTimeUnit": "ms",
        "otherData": {"recording": printable(timeline.name), "unit": "a microsecond is a line"},
    }


def _complete(timeline: CallTimeline, call: FunctionCall) -> JsonObject:
    return {
        "ph": "X",
        "name": printable(call.code.function),
        "cat": "goes on" if call.goes_on else "call",
        "pid": 1,
        "tid": call.lane + 1,
        "ts": call.begun,
        "dur": timeline.end(call) - call.begun,
        "args": {"moment": timeline.moment(call.begun), "place": timeline.place(call.code)},
    }


def speedscope(timeline: CallTimeline) -> JsonObject:
    """Return the calls as an evented profile for each thread."""
    codes = list(dict.fromkeys(call.code for call in timeline.calls))
    numbers = {code: number for number, code in enumerate(codes)}
    frames: list[JsonObject] = [
        {"name": printable(code.function), "file": timeline.file(code.file), "line": code.line} for code in codes
    ]
    by_lane = groupby(sorted(timeline.calls, key=attrgetter("lane")), key=attrgetter("lane"))
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": printable(timeline.name),
        "exporter": "replaydbg",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": [
            {
                "type": "evented",
                "name": f"{timeline.thread(lane)} (lines)",
                "unit": "none",
                "startValue": 0,
                "endValue": timeline.total,
                "events": list(_opened_and_closed(timeline, calls, numbers)),
            }
            for lane, calls in by_lane
        ],
    }


def _opened_and_closed(
    timeline: CallTimeline, calls: Iterator[FunctionCall], numbers: Mapping[CalledCode, int]
) -> Iterator[JsonObject]:
    """Yield the beginnings and ends of a thread's calls in their order, each end before that of the caller."""
    open_calls: list[tuple[int, int]] = []
    """Frames and ends, the innermost last."""
    for call in calls:
        while open_calls and open_calls[-1][1] <= call.begun:
            frame, end = open_calls.pop()
            yield {"type": "C", "frame": frame, "at": end}
        frame = numbers[call.code]
        # A call ends before its caller, even if the report has neither end.
        end = min([timeline.end(call), *(each for _, each in open_calls[-1:])])
        yield {"type": "O", "frame": frame, "at": call.begun}
        open_calls.append((frame, end))
    while open_calls:
        frame, end = open_calls.pop()
        yield {"type": "C", "frame": frame, "at": end}
