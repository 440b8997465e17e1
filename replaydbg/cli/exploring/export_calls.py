"""`replaydbg export --perfetto` and `--speedscope`: all calls of functions of a run, for viewers of timelines."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from replaydbg.cli.common.opening import opened
from replaydbg.cli.common.output import print_json, write_file
from replaydbg.commands.view import View
from replaydbg.debugger.session import Session
from replaydbg.events.records import Control, ControlKind
from replaydbg.events.show import printable
from replaydbg.log.reader import open_recording
from replaydbg.render import texts
from replaydbg.render.json_data.calls.call_timelines import CallTimeline, perfetto, speedscope

VIEWERS = {"perfetto": "https://ui.perfetto.dev", "speedscope": "https://www.speedscope.app"}
"""Names of options, and of the viewers that open the files; both run in the browser, and send nothing."""

_MADE = {"perfetto": perfetto, "speedscope": speedscope}


def write_calls(args: argparse.Namespace) -> int:
    """Write the file of the viewer that was asked for."""
    viewer = next(name for name in VIEWERS if getattr(args, name) is not None)
    path = getattr(args, viewer)
    with opened(args.recording, quiet=args.quiet) as view:
        timeline, is_whole = _timeline(view)
    data = json.dumps(_MADE[viewer](timeline), separators=(",", ":"), ensure_ascii=True).encode()
    write_file(path, data)
    if args.json:
        print_json({"file": path, "bytes": len(data), "calls": len(timeline.calls), "is_whole": is_whole})
        return 0
    print(printable(path))
    if not is_whole:
        print(
            f"replaydbg: the file has the first {len(timeline.calls):,} calls of your own code: the run has more.",
            file=sys.stderr,
        )
    return 0


def _timeline(view: View) -> tuple[CallTimeline, bool]:
    """Return all calls, or if there are too many those of own code; and whether these are all."""
    session = view.session
    found = session.run.each_call()
    if found.is_cut:
        found = session.run.each_call(own=view.own_code)
    timeline = CallTimeline(
        texts.recording_name(session),
        found.each,
        _thread_names(session),
        session.index.total,
        partial(_moment, session),
        partial(texts.file_text, session),
    )
    return timeline, not found.is_cut


def _thread_names(session: Session) -> dict[int, str]:
    """Return the names that threads had when they were started."""
    names = {0: "MainThread"}
    with open_recording(session.path) as recording:
        for entry in recording.selected_events(lambda gate: False):
            if isinstance(entry, Control) and entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
                names[entry.number] = entry.name or ""
    return names


def _moment(session: Session, count: int) -> str:
    return texts.moment_text(session.index.moment(count))
