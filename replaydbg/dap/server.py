"""One connection with an editor: its requests are answered in order, but cancelled at once.

A session of the debugger is for one thread. So a second thread only reads: it puts requests into a queue, and what
cannot wait (`cancel`, `pause`, the end) marks those that shall end.
"""

from __future__ import annotations

import sys
import threading
import time

from replaydbg.dap.capabilities import CAPABILITIES
from replaydbg.dap.wire.editor_requests import EditorRequest, RequestQueue, request_in
from replaydbg.dap.wire.editor_stream import EditorStream
from replaydbg.dap.wire.framing import DamagedMessage, MessageDecoder
from replaydbg.errors import Cancelled, ForgedMessage, ReplaydbgError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from replaydbg.dap.editor_conversation import EditorConversation
    from replaydbg.debugger.session_results import WorkProgress

SHOWN_AFTER = 0.2
"""Seconds after which a long request shows its progress."""

EVERY = 0.1
"""Seconds between two updates of the progress."""

MOVES = ("continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "reverseStepIn", "reverseStepOut")
"""The requests that `pause` ends."""

_ENDS = ("terminate", "disconnect")


class DapServer:
    """Serves one client until it disconnects or goes away."""

    def __init__(self, stream: EditorStream, resolve: Callable[[str], Path], *, is_strict: bool = False) -> None:
        """`resolve` returns the recording that a user names, or raises ReplaydbgError.

        `is_strict`: hang up on a client whose first bytes are no message, as a browser's are.
        """
        self._stream, self._resolve, self._is_strict = stream, resolve, is_strict
        self._queue = RequestQueue()
        self._client: dict[str, Any] | None = None
        """How the client counts, and what it supports; None: it has not sent `initialize`."""
        self._conversation: EditorConversation | None = None
        self._is_over = False
        self._shown: tuple[EditorRequest, float] | None = None
        """The request whose progress is shown, and when it was updated."""

    def serve(self) -> None:
        """Answer requests until the client disconnects or goes away; then end all processes of the session."""
        reader = threading.Thread(target=self._read, name="dap-reader", daemon=True)
        reader.start()
        try:
            while not self._is_over and (request := self._queue.take()) is not None:
                if isinstance(request, DamagedMessage):
                    self._stream.refuse(None, request.reason)
                else:
                    self._answer(request)
        finally:
            if self._conversation is not None:
                self._conversation.close()

    # ---- the reading thread ----

    def _read(self) -> None:
        decoder, is_known = MessageDecoder(), not self._is_strict
        while data := self._stream.read():
            for message in decoder.feed(data):
                if isinstance(message, DamagedMessage):
                    self._queue.put(message)
                    if not is_known:
                        self._queue.put(None)
                        return
                else:
                    is_known = True
                    self._take(message)
        left = decoder.end()
        if left is not None:
            self._queue.put(left)
        self._queue.cancel(lambda request: True)  # nobody waits for them any longer
        self._queue.put(None)

    def _take(self, message: dict[str, Any]) -> None:
        request = request_in(message)
        if isinstance(request, str):
            if request:
                self._queue.put(DamagedMessage(request))
            return
        if request.command == "cancel":
            self._cancel(request)
            return
        if request.command == "pause" and self._queue.has(_moves):
            # Its response comes before the news that the session has stopped, as the protocol has it.
            self._stream.respond(request, {})
            self._queue.cancel(_moves)
            return
        if request.command in _ENDS:
            self._queue.cancel(lambda each: each.command not in _ENDS)
        self._queue.put(request)

    def _cancel(self, request: EditorRequest) -> None:
        try:
            has_seq = request.arguments.has("requestId")
            seq = request.arguments.number("requestId") if has_seq else -1
            progress = request.arguments.text("progressId")
        except UsageError as error:
            self._stream.refuse(request, str(error))
            return
        # It is answered before what it cancels, which may take a moment to notice.
        self._stream.respond(request)
        self._queue.cancel(lambda each: each.seq == seq or each.progress_id == progress)

    # ---- the session's thread ----

    def _answer(self, request: EditorRequest) -> None:
        try:
            self.check()
            self._dispatch(request)
        except Cancelled:
            self._stream.refuse(request, "cancelled", message="cancelled")
            if _moves(request) and self._conversation is not None:
                self._conversation.report_stop("pause")
        except ForgedMessage as error:
            self._stream.refuse(request, str(error))
            self._stream.send_event("terminated")
            self._drop_conversation()
        except (ReplaydbgError, RecursionError, MemoryError, OSError) as error:
            self._stream.refuse(request, str(error) or type(error).__name__)
        except Exception:  # noqa: BLE001 - a bug of ours must not take the user's session with it
            # Imported here: it is seldom needed.
            import traceback

            # A name may have a lone surrogate, which no stream takes.
            text = traceback.format_exc().encode("ascii", "backslashreplace").decode("ascii")
            print(text, file=sys.stderr, flush=True)  # noqa: T201 - what an editor shows as the server's log
            self._stream.refuse(request, "Internal error in the debugger; its standard error has the details.")
        finally:
            self._end_progress()

    def _dispatch(self, request: EditorRequest) -> None:
        command = request.command
        if command == "initialize":
            self._initialize(request)
        elif self._client is None:
            raise UsageError(f"{command!r} was sent before 'initialize'.")
        elif command == "disconnect":
            self._drop_conversation()
            self._stream.respond(request)
            self._is_over = True
        elif command == "terminate":
            self._drop_conversation()
            self._stream.respond(request)
            self._stream.send_event("terminated")
        elif command in ("launch", "attach"):
            self._open(request)
        else:
            self._talk(request)

    def _initialize(self, request: EditorRequest) -> None:
        if self._client is not None:
            raise UsageError("'initialize' was sent twice.")
        arguments = request.arguments
        if arguments.text("pathFormat", "path") != "path":
            raise UsageError("pathFormat must be 'path'.")
        self._client = {
            "first_line": int(arguments.flag("linesStartAt1", True)),
            "first_column": int(arguments.flag("columnsStartAt1", True)),
            "takes_progress": arguments.flag("supportsProgressReporting"),
        }
        self._stream.respond(request, CAPABILITIES)

    def _open(self, request: EditorRequest) -> None:
        if self._conversation is not None:
            raise UsageError("A recording is open already.")
        assert self._client is not None
        # Imported here: the debugger takes longer to import than a client should wait for the capabilities.
        from replaydbg.dap.editor_conversation import Client, EditorConversation
        from replaydbg.dap.requested_recording import open_requested

        client = Client(self._client["first_line"], self._client["first_column"])
        opened = open_requested(request, self._resolve, self._stream, self._progressed)
        try:
            self._conversation = EditorConversation(opened, client, self._stream, self.check, self._queue.settle)
        except BaseException:
            opened.close()
            raise
        self._stream.respond(request)
        self._stream.send_event("initialized")

    def _talk(self, request: EditorRequest) -> None:
        if self._conversation is None:
            # Imported here, as above; without a recording only the names are needed.
            from replaydbg.dap.requests.request_table import HANDLERS

            if request.command in HANDLERS:
                raise UsageError(f"No recording is open for {request.command!r}: send 'launch' or 'attach' first.")
            raise UsageError(f"Unknown request: {request.command!r}.")
        self._conversation.answer(request)
        if self._conversation.is_over:
            self._drop_conversation()
            self._stream.send_event("terminated")

    def _drop_conversation(self) -> None:
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None

    # ---- progress ----

    def check(self) -> None:
        """Raise Cancelled if the running request is to end."""
        running = self._queue.running
        if running is not None and running.is_cancelled:
            raise Cancelled

    def _progressed(self, progress: WorkProgress) -> None:
        self.check()
        running = self._queue.running
        if running is None or not (self._client or {}).get("takes_progress") or progress.seconds < SHOWN_AFTER:
            return
        now = time.monotonic()
        body = {"progressId": running.progress_id, "message": f"{progress.seconds:.1f} s"}
        if progress.done:
            body["percentage"] = round(100 * progress.done)  # type: ignore[assignment]
        if self._shown is None:
            more = {"title": progress.what, "cancellable": True, "requestId": running.seq}
            self._stream.send_event("progressStart", body | more)
        elif now - self._shown[1] >= EVERY:
            self._stream.send_event("progressUpdate", body)
        else:
            return
        self._shown = running, now

    def _end_progress(self) -> None:
        if self._shown is not None:
            self._stream.send_event("progressEnd", {"progressId": self._shown[0].progress_id})
            self._shown = None


def _moves(request: EditorRequest) -> bool:
    return request.command in MOVES
