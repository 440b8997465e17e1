"""`replaydbg seek`: show a moment: its position, the stack, the threads, the local variables."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.opening import add_quiet, opened_at
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.commands import inspecting, whole_run
from replaydbg.commands.view import View
from replaydbg.debugger.session_results import Lane, Task, Variable
from replaydbg.render import texts
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.json_data.moments_json import frame_facts, moment_facts

MOST_FRAMES = 1000
"""Maximum number of frames in the JSON output, unless one further out is asked for; "frames" is the total."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument(
        "at", metavar="MOMENT", help="such as 120, 120:35, 71%%, @exc, @end, @out:17, @log:TEXT or @t+1.2s"
    )
    parser.add_argument(
        "--frame",
        type=int,
        default=0,
        metavar="N",
        help="show the variables of the Nth frame (default: 0, the innermost)",
    )
    parser.add_argument("--thread", dest="lane", type=int, metavar="N", help="show thread N (default: the running one)")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the moment."""
    with opened_at(args) as view:
        if args.json:
            variables = view.session.ask.variables(**view.at) if view.frames() else ()
            print_json(_facts(view, variables))
            return 0
        view.show_here()
        if view.frames():
            inspecting.where(view, "")
            inspecting.local_variables(view, "")
        if len(view.here.lanes) > 1:
            whole_run.threads(view, "")
        elif view.session.ask.tasks():
            whole_run.tasks(view, "")
        return 0


def _facts(view: View, variables: tuple[Variable, ...]) -> JsonObject:
    here, frames = view.here, view.frames()
    return {
        **moment_facts(view.session, here.count, here.moment),
        "lines": here.total,
        "percent": round(here.percent, 3),
        "seconds": view.session.time_at(here.moment),
        "why": here.why,
        "message": here.message,
        "thread": here.lane,
        "stack": [frame_facts(each) for each in frames[: max(MOST_FRAMES, view.frame + 1)]],
        "frames": len(frames),
        "threads": [_lane(each) for each in here.lanes],
        "tasks": [_task(each) for each in view.session.ask.tasks()],
        "locals": [
            {"name": each.name, "type": each.type, "text": each.text, "parts": each.parts} for each in variables
        ],
        "link": f"rdbg://{texts.recording_name(view.session)}@{texts.moment_text(here.moment)}",
    }


def _task(task: Task) -> JsonObject:
    return {
        "name": task.name,
        "runs": task.is_running,
        "waits_for": task.waits_for or None,
        "awaits": list(task.awaits),
        "stack": [{"file": file, "line": line, "function": function} for file, line, function in task.frames],
    }


def _lane(lane: Lane) -> JsonObject:
    return {
        "thread": lane.id,
        "name": lane.name,
        "waits_for": lane.waits_for or None,
        "top": frame_facts(lane.top) if lane.top is not None else None,
    }
