"""Backwards to the last breakpoint; of a data breakpoint, to the line that wrote the value.

A watchpoint of the session stops behind a change, in both directions, and so not where the session stands behind one.
Backwards a client wants the line that wrote. `why` knows it, if a frame on the stack has the value under its name. So
it is asked first; for other values the session searches, and `why` is asked where it stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from replaydbg.dap.debuggee import Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.requests.motion_requests import carry_out, select_thread
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger.session_results import Breakpoint, LastWrite
from replaydbg.errors import Cancelled, EngineLost, ForgedMessage, ReplaydbgError
from replaydbg.render import texts


def reverse_continue(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Run back to the last breakpoint before here; of a data breakpoint, to the line that wrote the value."""
    select_thread(debuggee, arguments, is_step=False)
    return EditorAnswer({}, move=partial(_run_back, debuggee))


def _run_back(debuggee: Debuggee) -> None:
    view = debuggee.view
    writes = dict(_writes(debuggee))
    last = max(writes, key=lambda number: writes[number].count, default=0)
    with _without(debuggee, list(writes)):
        if last:
            view.keep()
            view.session.reverse_go(until=writes[last].count)
            view.arrive()
        else:
            carry_out(debuggee, "reverse-continue")
    here = view.here
    if last and here.count == writes[last].count and not here.breakpoint:
        _arrive(debuggee, last, writes[last])
    elif here.why == "watch":
        write = _last_write(debuggee, _points(debuggee)[here.breakpoint])
        if write is not None:
            _arrive(debuggee, here.breakpoint, write)


def _points(debuggee: Debuggee) -> dict[int, Breakpoint]:
    return {each.number: each for each in debuggee.session.breakpoints}


def _writes(debuggee: Debuggee) -> Iterator[tuple[int, LastWrite]]:
    """Yield the last writes before here of the values that have data breakpoints without a condition."""
    if debuggee.view.here.is_changed:
        return  # the past of a changed run is the recorded one, to which the search returns
    of_client = {each.number for each in debuggee.data_points.values()}
    for number, point in _points(debuggee).items():
        if number in of_client and point.enabled and not point.condition and not point.ignore:
            write = _last_write(debuggee, point)
            if write is not None:
                yield number, write


def _last_write(debuggee: Debuggee, point: Breakpoint) -> LastWrite | None:
    """Return the last change of a value before here; None: no frame here has it under its name, or it is unknown."""
    watch = point.watch
    assert watch is not None, point
    expression, number = point.place, 0
    if watch.module:
        is_named = expression.startswith(f"{watch.module}.")
        expression = expression if is_named else f"{watch.module}.{expression}"
    else:
        frames = debuggee.session.ask.stack()
        activation = (watch.started, watch.first_line)
        found = [at for at, each in enumerate(frames) if (each.started, each.first_line) == activation]
        if not found:
            return None
        number = found[0]
    try:
        write = debuggee.session.run.why(expression, number)
    except (Cancelled, EngineLost, ForgedMessage):
        raise
    except ReplaydbgError:
        return None
    write = write.changed if write.is_equal and write.changed is not None else write
    return write if write.moment is not None and write.count < debuggee.view.here.count else None


@contextmanager
def _without(debuggee: Debuggee, numbers: list[int]) -> Iterator[None]:
    """Context in which some breakpoints do not stop."""
    breakpoints = debuggee.session.breakpoints
    for each in numbers:
        breakpoints.change(each, enabled=False)
    try:
        yield
    finally:
        for each in numbers:
            breakpoints.change(each, enabled=True)


def _arrive(debuggee: Debuggee, number: int, write: LastWrite) -> None:
    """Go to the line that wrote a value, and print what is known of it."""
    view = debuggee.view
    debuggee.print_in_console("\n".join(each.text for each in texts.why_report(view.session, write, view.group)))
    message = f"{write.expression} is written here"
    view.session.seek(write.count, why="watch", breakpoint_=number, message=message)
    view.arrive(is_kept=False)
