"""The capabilities that the server reports. A test compares them with the requests that exist."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RAISED, RAISED_ANYWHERE, OF_TYPE, UNCAUGHT = "raised", "raised-anywhere", "type", "uncaught"
"""The filters for exceptions."""

_FILTERS = (
    {
        "filter": UNCAUGHT,
        "label": "The exception that ended the program",
        "description": "Or made its test fail.",
        "default": True,
    },
    {
        "filter": RAISED,
        "label": "Exceptions that your code raises",
        "supportsCondition": True,
        "conditionDescription": "Expression that must be true there, such as len(order.lines) > 3",
    },
    {
        "filter": RAISED_ANYWHERE,
        "label": "Exceptions that any code raises",
        "description": "Libraries and imports included.",
        "supportsCondition": True,
        "conditionDescription": "Expression that must be true there, such as len(order.lines) > 3",
    },
    {
        "filter": OF_TYPE,
        "label": "Exceptions of a type",
        "supportsCondition": True,
        "conditionDescription": "[own] TYPE [%N] [if CONDITION], such as ValueError, or own KeyError if key == 3",
    },
)

CAPABILITIES: dict[str, Any] = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "exceptionBreakpointFilters": list(_FILTERS),
    "supportsStepBack": True,
    "supportsRestartFrame": True,
    "supportsGotoTargetsRequest": True,
    "supportsCompletionsRequest": True,
    "completionTriggerCharacters": [".", "[", "@", "'", '"'],
    "supportsExceptionInfoRequest": True,
    "supportsExceptionFilterOptions": True,
    "supportsDelayedStackTraceLoading": True,
    "supportsLoadedSourcesRequest": True,
    "supportsLogPoints": True,
    "supportsTerminateRequest": True,
    "supportsDataBreakpoints": True,
    "supportsCancelRequest": True,
    "supportsBreakpointLocationsRequest": True,
    "supportsClipboardContext": True,
}
"""Without stepping granularity: the smallest step of Python code is a line. Without setting variables: a recorded run
cannot be another one; the console's `set var` leaves it, and prints that."""
