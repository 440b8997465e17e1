"""Threads and their frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from replaydbg.commands.task_tree import task_tree
from replaydbg.dap.debuggee import Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.handles import FrameHandle, ThreadHandle
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger import Session
from replaydbg.debugger.assertions import frame_to_show
from replaydbg.debugger.session_results import Frame, Task
from replaydbg.debugger.source.source_files import is_library
from replaydbg.errors import AskFailed, UsageError
from replaydbg.events.show import printable
from replaydbg.render import texts
from replaydbg.render.groups.processes_text import command_text

MOST_FRAMES = 1000
"""Frames in one answer; a client asks for more of a deep stack."""

MOST_PROCESSES = 100
"""Processes of a group that are listed besides the selected one."""


def threads(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the threads, the asyncio tasks, and the other processes of the group."""
    view = debuggee.view
    found = [
        (ThreadHandle(view.process, each.id), _lane_name(debuggee, each.id, each.waits_for)) for each in view.here.lanes
    ]
    tasks = _tasks(view.session)
    by_task = dict(zip(map(id, tasks), _task_names(tasks), strict=True))
    for row in task_tree(tasks):
        if not row.is_again:
            name = f"{'  ' * row.depth}task {row.task.name}: {row.state}"
            found.append((ThreadHandle(view.process, -1, by_task[id(row.task)]), name))
    found += _other_processes(debuggee)
    return EditorAnswer(
        {"threads": [{"id": debuggee.threads.of(handle), "name": printable(name)} for handle, name in found]}
    )


def _lane_name(debuggee: Debuggee, lane: int, waits_for: str) -> str:
    view = debuggee.view
    name = texts.lane_text(lane, view.here.lanes)
    name = f"process {view.process}: {name}" if view.process else name
    return f"{name}: waits for {waits_for}" if waits_for else name


def _tasks(session: Session) -> Sequence[Task]:
    try:
        return session.ask.tasks()
    except AskFailed:
        return ()  # without an answer: as if there were no tasks


def _task_names(tasks: Sequence[Task]) -> list[str]:
    """Return a name for each task; of several with one name, each with its number among them."""
    numbers: Counter[str] = Counter()
    found = []
    for each in tasks:
        numbers[each.name] += 1
        found.append(each.name if numbers[each.name] == 1 else f"{each.name} #{numbers[each.name]}")
    return found


def _other_processes(debuggee: Debuggee) -> Iterator[tuple[ThreadHandle, str]]:
    """Yield the main thread of each other recorded process: a stack of it opens that process, too."""
    group = debuggee.view.group
    if group.directory is None:
        return
    others = [each for each in group.group.processes if each.recording and each.number != debuggee.view.process]
    for process in others[:MOST_PROCESSES]:
        session = group.sessions.get(process.number)
        lane = session.here.lane if session is not None else 0
        yield ThreadHandle(process.number, lane), f"process {process.number}: {command_text(process)}".rstrip(": ")


def stack_trace(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return frames of a thread, innermost first."""
    handle = debuggee.threads.at(arguments.needed_number("threadId"))
    first, levels = arguments.number("startFrame"), arguments.number("levels") or MOST_FRAMES
    last = first + min(levels, MOST_FRAMES)
    if handle.lane < 0:
        places = _frames_of_task(debuggee, handle)
        task_rows = [_task_row(debuggee, handle, at, places[at]) for at in range(len(places))[first:last]]
        return EditorAnswer({"stackFrames": task_rows, "totalFrames": len(places)})
    session = debuggee.session_of(handle.process)
    if handle.lane not in {each.id for each in session.here.lanes}:
        raise UsageError("This thread does not run at this moment.")
    frames = session.ask.stack(debuggee.lane_asked(handle.process, handle.lane))
    helpers = frame_to_show(session) if handle.lane == session.here.lane and not first else 0
    rows = [
        _frame_row(debuggee, session, FrameHandle(handle.process, handle.lane, at), frames[at], is_helper=at < helpers)
        for at in range(len(frames))[first:last]
    ]
    return EditorAnswer({"stackFrames": rows, "totalFrames": len(frames)})


def _frame_row(
    debuggee: Debuggee, session: Session, handle: FrameHandle, frame: Frame, *, is_helper: bool
) -> dict[str, Any]:
    is_other = is_helper or is_library(frame.file)
    return {
        "id": debuggee.frames.of(handle),
        "name": printable(frame.function),
        "source": debuggee.sources.source(session, frame.file),
        "line": debuggee.line_for_client(frame.line),
        "column": debuggee.client.first_column,
        "canRestart": frame.started > 0 and not session.here.is_changed,
        **({"presentationHint": "subtle"} if is_other else {}),
    }


def _frames_of_task(debuggee: Debuggee, handle: ThreadHandle) -> list[tuple[str, int, str]]:
    """Return the coroutines of a task, innermost first. Raises UsageError if it is done, or not yet made."""
    tasks = _tasks(debuggee.session_of(handle.process))
    found = next((each for each, name in zip(tasks, _task_names(tasks), strict=True) if name == handle.task), None)
    if found is None:
        raise UsageError("This task does not exist at this moment.")
    return list(reversed(found.frames))


def _task_row(debuggee: Debuggee, handle: ThreadHandle, at: int, place: tuple[str, int, str]) -> dict[str, Any]:
    file, line, function = place
    session = debuggee.session_of(handle.process)
    return {
        "id": debuggee.frames.of(_frame_of_task(debuggee, handle, at, place)),
        "name": printable(function),
        "source": debuggee.sources.source(session, file),
        "line": debuggee.line_for_client(line),
        "column": debuggee.client.first_column,
        "canRestart": False,
    }


def _frame_of_task(debuggee: Debuggee, handle: ThreadHandle, at: int, place: tuple[str, int, str]) -> FrameHandle:
    """Return the frame of a coroutine: that on the stack if its task runs, else one without values."""
    session = debuggee.session_of(handle.process)
    stack = session.ask.stack()
    for number, each in enumerate(stack[:MOST_FRAMES]):
        if (each.file, each.function, each.line) == (place[0], place[2], place[1]) and each.is_generator:
            return FrameHandle(handle.process, session.here.lane, number)
    # A negative number for each frame that waits, so that they differ.
    return FrameHandle(handle.process, debuggee.threads.of(handle), -1 - at)
