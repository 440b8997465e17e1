"""Source files, and the exception at a stop."""

from __future__ import annotations

from typing import Any

from replaydbg.dap.debuggee import Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger.session_results import Raised
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.render import texts


def source(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the recorded text of a file that is not here, or differs from it."""
    return EditorAnswer({"content": debuggee.sources.text(arguments), "mimeType": "text/x-python"})


def loaded_sources(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the files in which lines ran."""
    session = debuggee.session
    files = sorted({each.file for each in session.index.hits})
    return EditorAnswer({"sources": [debuggee.sources.source(session, each) for each in files]})


def exception_info(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the exception that the line here raises, or that is being handled. Raises UsageError if there is none."""
    handle = debuggee.threads.at(arguments.needed_number("threadId"))
    session = debuggee.session_of(handle.process)
    raised = [] if session.here.is_changed else _raised_here(session.index.raised_at(session.here.count))
    if raised:
        return EditorAnswer(_described(debuggee, raised[-1]))
    handled = session.ask.exceptions()
    if not handled:
        raise UsageError("No exception is raised or handled here.")
    (kind, text), *causes = handled
    details: dict[str, Any] = {"typeName": printable(kind), "message": printable(text)}
    details["innerException"] = [{"typeName": printable(name), "message": printable(why)} for name, why in causes]
    return EditorAnswer(
        {
            "exceptionId": printable(kind),
            "description": printable(text),
            "breakMode": "never",
            "details": details,
        }
    )


def _raised_here(found: tuple[Raised, ...]) -> list[Raised]:
    return [each for each in found if each.type not in texts.SILENT]


def _described(debuggee: Debuggee, raised: Raised) -> dict[str, Any]:
    frames = [
        f"  {texts.place_text(debuggee.session, each.file, each.line, each.function)}"
        for each in debuggee.session.ask.stack()[:100]
    ]
    return {
        "exceptionId": printable(raised.type),
        "description": printable(raised.message),
        "breakMode": "unhandled" if raised.is_uncaught else "always",
        "details": {
            "typeName": printable(raised.type),
            "fullTypeName": printable(next(iter(raised.lineage), raised.type)),
            "message": printable(raised.message),
            "stackTrace": "\n".join(map(printable, frames)),
        },
    }
