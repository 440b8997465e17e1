"""Motions, forwards and backwards, and moments to go to."""

from __future__ import annotations

from functools import partial
from typing import Any

from replaydbg.commands.landmarks import visits
from replaydbg.dap.debuggee import Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.handles import ThreadHandle
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.render import texts

MOST_TARGETS = 50
"""Visits of a line that an editor offers: those nearest to the position."""


def move_by(command: str, *, is_step: bool) -> Any:
    """Return the handler of a motion that a command of the prompt makes; `is_step`: of the thread that is named."""

    def handle(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
        select_thread(debuggee, arguments, is_step=is_step)
        body = {} if is_step else {"allThreadsContinued": True}
        return EditorAnswer(body, move=partial(carry_out, debuggee, command))

    return handle


def carry_out(debuggee: Debuggee, command: str) -> None:
    """Let the hidden prompt do a command that moves."""
    # The console's `direction reverse` turns its words around, not the buttons of an editor.
    view = debuggee.view
    before, view.is_backward = view.is_backward, False
    try:
        debuggee.prompt.carry_out(command)
    finally:
        debuggee.view.is_backward = before


def select_thread(debuggee: Debuggee, arguments: RequestArguments, *, is_step: bool) -> None:
    """Select the thread that is to move (default: the running one).

    Raises UsageError for a task that waits, or a thread that is gone.
    """
    running = ThreadHandle(debuggee.view.process, debuggee.view.here.lane)
    handle = debuggee.threads.at(arguments.number("threadId")) if arguments.has("threadId") else running
    if handle.process != debuggee.view.process:
        debuggee.view.select_process(handle.process)
    debuggee.view.lane, debuggee.view.frame = None, 0
    if not is_step:
        return
    here = debuggee.view.here
    if handle.lane < 0:
        if not _runs(debuggee, handle):
            raise UsageError("This task waits: step in the thread that runs it.")
    elif handle.lane not in {each.id for each in here.lanes}:
        raise UsageError("This thread does not run at this moment.")
    elif handle.lane != here.lane:
        debuggee.view.lane = handle.lane


def _runs(debuggee: Debuggee, handle: ThreadHandle) -> bool:
    return any(each.is_running and each.name == handle.task for each in debuggee.session.ask.tasks())


# ---- to moments ----


def goto_targets(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the moments at which a line was about to run, the nearest ones."""
    session, here = debuggee.session, debuggee.view.here
    file = debuggee.sources.file_named(session, arguments.object("source"))
    line = debuggee.line_of_client(arguments.needed_number("line"))
    found, is_more = visits(debuggee.view, f"{file}:{line}")
    debuggee.console.take()  # that another line is the next one that ran: the targets have it
    counts = [session.index.count(each) for each in found]
    nearest = sorted(range(len(counts)), key=lambda at: abs(counts[at] - here.count))[:MOST_TARGETS]
    total = f"{len(counts):,}+" if is_more else f"{len(counts):,}"
    targets = []
    for at in sorted(nearest):
        share = texts.percent_text(counts[at], here.total)
        label = f"visit {at + 1:,} of {total}, {texts.moment_text(found[at])} ({share})"
        number = debuggee.targets.of((debuggee.view.process, counts[at]))
        targets.append({"id": number, "label": label, "line": debuggee.line_for_client(line)})
    return EditorAnswer({"targets": targets})


def goto(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Go to one of these moments."""
    process, count = debuggee.targets.at(arguments.needed_number("targetId"))
    if process != debuggee.view.process:
        raise UsageError("This target is in another process.")
    return EditorAnswer({}, move=partial(_go_to, debuggee, count))


def seek(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Go to a moment, such as `120:35` or `@exc`."""
    moment = arguments.needed_text("moment")
    debuggee.session.count_of(moment)  # a mistake is the answer to the request
    return EditorAnswer({}, move=partial(_go_to, debuggee, moment))


def _go_to(debuggee: Debuggee, moment: str | int) -> None:
    view = debuggee.view
    view.keep()
    view.session.seek(moment)
    view.arrive()


def restart_frame(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Go to the first line of a frame's activation."""
    handle = debuggee.live_frame_at(arguments.needed_number("frameId"))
    started = debuggee.python_frame(handle).started
    if not started:
        raise UsageError("It is not known when this frame was started.")
    debuggee.select(handle)
    return EditorAnswer({}, move=partial(_go_to, debuggee, started))


def why(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return which line last wrote a value, and what the value came from."""
    handle = debuggee.live_frame_at(arguments.number("frameId"))
    session = debuggee.session_of(handle.process)
    lane = debuggee.lane_asked(handle.process, handle.lane)
    write = session.run.why(arguments.needed_text("expression"), handle.frame, lane=lane)
    lines = [printable(each.text) for each in texts.why_report(session, write, debuggee.view.group)]
    found: dict[str, Any] = {"text": "\n".join(lines)}
    if write.moment is not None:
        found |= {
            "moment": texts.moment_text(write.moment),
            "source": debuggee.sources.source(session, write.file),
            "line": debuggee.line_for_client(write.line),
        }
    return EditorAnswer(found)


def pause(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Report that the session has stopped: what moved was cancelled when the request came."""
    return EditorAnswer({}, stop="pause")
