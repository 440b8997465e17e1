"""The requests about an open recording, by name."""

from __future__ import annotations

from collections.abc import Callable

from replaydbg.dap.debuggee import Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.requests import (
    breakpoint_requests,
    evaluation_requests,
    motion_requests,
    reverse_requests,
    source_requests,
    stack_requests,
    value_requests,
)
from replaydbg.dap.requests.motion_requests import move_by
from replaydbg.dap.wire.request_arguments import RequestArguments

Handler = Callable[[Debuggee, RequestArguments], EditorAnswer]


def _configuration_done(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    return EditorAnswer(stop=debuggee.reason)


HANDLERS: dict[str, Handler] = {
    "configurationDone": _configuration_done,
    "setBreakpoints": breakpoint_requests.set_breakpoints,
    "breakpointLocations": breakpoint_requests.breakpoint_locations,
    "setFunctionBreakpoints": breakpoint_requests.set_function_breakpoints,
    "setExceptionBreakpoints": breakpoint_requests.set_exception_breakpoints,
    "dataBreakpointInfo": breakpoint_requests.data_breakpoint_info,
    "setDataBreakpoints": breakpoint_requests.set_data_breakpoints,
    "threads": stack_requests.threads,
    "stackTrace": stack_requests.stack_trace,
    "scopes": value_requests.scopes,
    "variables": value_requests.variables,
    "evaluate": evaluation_requests.evaluate,
    "completions": evaluation_requests.completions,
    "next": move_by("next", is_step=True),
    "stepIn": move_by("step", is_step=True),
    "stepOut": move_by("finish", is_step=True),
    "stepBack": move_by("reverse-next", is_step=True),
    "continue": move_by("continue", is_step=False),
    "reverseContinue": reverse_requests.reverse_continue,
    "goto": motion_requests.goto,
    "gotoTargets": motion_requests.goto_targets,
    "restartFrame": motion_requests.restart_frame,
    "pause": motion_requests.pause,
    "source": source_requests.source,
    "loadedSources": source_requests.loaded_sources,
    "exceptionInfo": source_requests.exception_info,
    # Not in the protocol, for the buttons of an extension: the protocol has one way back, over calls.
    "reverseStepIn": move_by("reverse-step", is_step=True),
    "reverseStepOut": move_by("reverse-finish", is_step=True),
    "seek": motion_requests.seek,
    "why": motion_requests.why,
}
