"""A conversation with an editor about an open recording: answers, then motions, then the news that it has stopped."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from replaydbg.dap.debuggee import Client as Client
from replaydbg.dap.debuggee import Debuggee, OpenedRecording
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.handles import ThreadHandle
from replaydbg.dap.requests.request_table import HANDLERS
from replaydbg.dap.wire.editor_requests import EditorRequest
from replaydbg.dap.wire.editor_stream import EditorStream
from replaydbg.errors import Cancelled, EngineLost, ForgedMessage, ReplaydbgError, UsageError
from replaydbg.events.show import printable
from replaydbg.render import texts

_REASONS = {"watch": "data breakpoint", "seek": "goto"}
"""Reasons for a stop by their names in the protocol, where these differ from the session's."""

_DESCRIPTIONS = {"end": "At the end of the run", "start": "At the start of the run", "exception": "Paused on exception"}


class EditorConversation:
    """Answers requests about an open recording. For one thread."""

    def __init__(
        self,
        opened: OpenedRecording,
        client: Client,
        stream: EditorStream,
        check: Callable[[], None],
        settle: Callable[[], None],
    ) -> None:
        """`check` raises Cancelled if the running request is to end; `settle` is called before a stop is reported."""
        self._stream, self._settle = stream, settle
        self._debuggee = Debuggee(opened, client, stream.send_event, check)
        self._client = client
        self.is_over = False
        """Whether the user has left."""
        limitations = opened.session.limitations.text
        if limitations:
            self._debuggee.print_in_console(limitations)

    def close(self) -> None:
        """End all processes."""
        self._debuggee.close()

    def answer(self, request: EditorRequest) -> None:
        """Answer a request. Raises ReplaydbgError if it was not answered."""
        handler = HANDLERS.get(request.command)
        if handler is None:
            raise UsageError(f"Unknown request: {request.command!r}.")
        before = self._debuggee.position
        try:
            answer = handler(self._debuggee, request.arguments)
        except EngineLost as error:
            self._debuggee.reopen()
            self._stream.refuse(request, f"{error} It was opened again.")
            self.report_stop("pause")
            return
        except ForgedMessage:
            raise  # nothing is left of that session
        except ReplaydbgError:
            # A command may have moved before it failed.
            has_moved = self._debuggee.position != before
            self._debuggee.console.take()
            if not has_moved:
                raise
            self._refuse_moved(request)
            return
        self._stream.respond(request, answer.body)
        self._do(answer)
        self._take_notices()

    def _refuse_moved(self, request: EditorRequest) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, Cancelled):
            self._stream.refuse(request, "cancelled", message="cancelled")
        else:
            self._stream.refuse(request, str(error))
        self.report_stop(self._debuggee.reason)

    def _do(self, answer: EditorAnswer) -> None:
        """Do what follows a response; what it fails with is printed."""
        if answer.is_end:
            self.is_over = True
        if answer.work is not None and not self._guarded(answer.work):
            self._debuggee.print_in_console("Cancelled.")
        if answer.move is not None:
            is_done = self._guarded(answer.move)
            self.report_stop(self._debuggee.reason if is_done else "pause")
        elif answer.stop:
            self.report_stop(answer.stop)

    def _guarded(self, work: Callable[[], object]) -> bool:
        """Do it; return whether it was not cancelled."""
        debuggee = self._debuggee
        try:
            debuggee.check()
            work()
        except Cancelled:
            return False
        except ForgedMessage:
            raise
        except EngineLost as error:
            debuggee.reopen()
            debuggee.print_in_console(f"{error} It was opened again.")
        except (ReplaydbgError, RecursionError, MemoryError, OSError) as error:
            debuggee.emit("output", {"category": "important", "output": f"{printable(str(error))}\n"})
        except Exception:  # noqa: BLE001 - a bug of ours: the request is answered, and the session must go on
            print(ascii(traceback.format_exc()), file=sys.stderr, flush=True)  # noqa: T201 - the server's log
            debuggee.print_in_console("Internal error in the debugger; its standard error has the details.")
        finally:
            debuggee.console.take()
        return True

    # ---- stops ----

    def report_stop(self, reason: str) -> None:
        """Send the news that the session has stopped, behind what the program has printed until then."""
        debuggee = self._debuggee
        # Who reads of the stop and pauses then waits for another one.
        self._settle()
        session, here = debuggee.session, debuggee.view.here
        for each in debuggee.output.new(session):
            debuggee.emit("output", {"category": each.category, "output": each.text})
        debuggee.forget_stop()
        body: dict[str, Any] = {
            "reason": _REASONS.get(reason, reason),
            "threadId": debuggee.threads.of(ThreadHandle(debuggee.view.process, here.lane)),
            "allThreadsStopped": True,
        }
        text = printable(texts.reason_text(session, here))
        if text:
            body["text"] = text
        if reason in _DESCRIPTIONS:
            body["description"] = _DESCRIPTIONS[reason]
        if here.breakpoint:
            body["hitBreakpointIds"] = [here.breakpoint]
        debuggee.emit("stopped", body)

    def _take_notices(self) -> None:
        for notice in self._debuggee.view.group.take_notices():
            self._debuggee.emit("output", {"category": "important", "output": f"{printable(notice)}\n"})
