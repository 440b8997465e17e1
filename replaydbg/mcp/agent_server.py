"""One connection with an agent: questions are answered in order, everything else at once.

A session of the debugger is for one thread. So a second thread reads: it answers what needs no session, puts questions
into a queue, and marks those that are cancelled.
"""

from __future__ import annotations

import sys
import threading
import time

from replaydbg.errors import Cancelled
from replaydbg.mcp import messages
from replaydbg.mcp.instructions import INSTRUCTIONS
from replaydbg.mcp.message_lines import LineDecoder, encoded_line
from replaydbg.mcp.messages import AgentNotice, AgentRequest, InvalidMessage, RequestRefused
from replaydbg.mcp.request_queue import QuestionQueue
from replaydbg.mcp.tool_table import tools_offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from replaydbg.debugger.session_results import WorkProgress
    from replaydbg.mcp.inquiry import Inquiry

READ_AT_ONCE = 65536

SHOWN_AFTER = 0.2
"""Seconds after which a long question reports its progress."""

EVERY = 0.1
"""Seconds between two reports."""

_CACHED: dict[str, object] = {"ttlMs": 3_600_000, "cacheScope": "public"}
"""For how long a client may keep lists: they change with the version of replaydbg alone."""


class McpServer:
    """Serves one client until it goes away."""

    def __init__(
        self,
        read: Callable[[int], bytes],
        write: Callable[[bytes], object],
        *,
        version: str,
        is_run_allowed: bool = False,
    ) -> None:
        """`read` and `write` may raise OSError. `version`: that of replaydbg. `is_run_allowed`: to run programs."""
        self._read_bytes, self._write = read, write
        self._server: dict[str, object] = {"name": "replaydbg", "title": "replaydbg", "version": version}
        self._tools = tools_offered(is_run_allowed=is_run_allowed)
        self._queue = QuestionQueue()
        self._lock = threading.Lock()
        self._is_broken = False
        """Whether the client has gone away."""
        self._has_begun = False
        """Whether the client has sent `initialize`."""
        self._inquiry: Inquiry | None = None
        self._reported: tuple[AgentRequest, float, float] | None = None
        """The question whose progress is reported, when it began, and when that was last reported."""

    def serve(self) -> None:
        """Answer until the client goes away; then end all processes of the debugger."""
        threading.Thread(target=self._read, name="mcp-reader", daemon=True).start()
        try:
            while (request := self._queue.take()) is not None:
                self._answer(request, self._call)
        finally:
            if self._inquiry is not None:
                self._inquiry.close()

    # ---- the reading thread ----

    def _read(self) -> None:
        decoder = LineDecoder()
        try:
            while data := self._piece():
                for value in decoder.feed(data):
                    self._take(messages.message_of(value))
            left = decoder.end()
            if left is not None:
                self._take(messages.message_of(left))
        finally:
            self._queue.end()

    def _piece(self) -> bytes:
        try:
            return self._read_bytes(READ_AT_ONCE)
        except OSError:
            return b""

    def _take(self, message: AgentRequest | AgentNotice | InvalidMessage | None) -> None:
        if isinstance(message, InvalidMessage):
            self._send(messages.error_of(message.id, message.code, message.reason))
        elif isinstance(message, AgentNotice):
            number = message.params.get("requestId")
            if message.method == "notifications/cancelled" and isinstance(number, (str, int)):
                self._queue.cancel(number)
        elif message is not None:
            self._answer(message, self._at_once)

    def _answer(self, request: AgentRequest, act: Callable[[AgentRequest], dict[str, object] | None]) -> None:
        """Answer a request with what `act` returns; None: that comes later, or never."""
        try:
            body = act(request)
            if body is not None:
                self._send(messages.result_of(request, body, self._server))
        except Cancelled:
            return  # as the protocol has it, a request that was cancelled has no response
        except RequestRefused as error:
            self._send(messages.error_of(request.id, error.code, str(error), error.data))
        except Exception:  # noqa: BLE001 - a bug of ours must not end the server
            # Imported here: it is seldom needed.
            import traceback

            print(ascii(traceback.format_exc()), file=sys.stderr, flush=True)  # noqa: T201 - what a client shows as the log
            text = "Internal error in the debugger; its standard error has the details."
            self._send(messages.error_of(request.id, messages.INTERNAL_ERROR, text))

    def _at_once(self, request: AgentRequest) -> dict[str, object] | None:
        method = request.method
        if request.is_modern:
            request.check_version()
        elif method == "initialize":
            return self._initialize(request)
        elif method == "ping":
            return {}
        elif method == "server/discover" or not self._has_begun:
            needs = "a protocol version in _meta, or 'initialize' before it"
            raise RequestRefused(messages.INVALID_PARAMS, f"{messages.shown(method)} needs {needs}.")
        if method == "server/discover":
            versions = [messages.VERSION, *messages.EARLIER]
            return {"supportedVersions": versions, **self._description(), **_CACHED}
        if method == "tools/list":
            tools = [each.as_json() for each in self._tools.values()]
            return {"tools": tools, **(_CACHED if request.is_modern else {})}
        if method != "tools/call":
            raise RequestRefused(messages.METHOD_NOT_FOUND, f"There is no method {messages.shown(method)}.")
        if not self._queue.put(request):
            raise RequestRefused(messages.INVALID_PARAMS, "A request with this id is being answered.")
        return None

    def _initialize(self, request: AgentRequest) -> dict[str, object]:
        self._has_begun = True
        version = messages.agreed_version(request.params.get("protocolVersion"))
        return {"protocolVersion": version, **self._description(), "serverInfo": self._server}

    def _description(self) -> dict[str, object]:
        return {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}

    # ---- the session's thread ----

    def _call(self, request: AgentRequest) -> dict[str, object]:
        self.check()
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not isinstance(name, str) or name not in self._tools:
            known = ", ".join(self._tools)
            raise RequestRefused(
                messages.INVALID_PARAMS, f"Unknown tool: {messages.shown(name)}. The tools are {known}."
            )
        if not isinstance(arguments, dict):
            raise RequestRefused(
                messages.INVALID_PARAMS, f"arguments must be an object (got {messages.shown(arguments)})."
            )
        if self._inquiry is None:
            # Imported here: the debugger takes longer to import than a client should wait for the list of tools.
            from replaydbg.mcp.inquiry import Inquiry

            self._inquiry = Inquiry(self.check, self._progressed)
        now = time.monotonic()
        self._reported = (request, now, now + SHOWN_AFTER - EVERY)
        try:
            return self._inquiry.call(self._tools[name], arguments)
        finally:
            self._reported = None

    def check(self) -> None:
        """Raise Cancelled if the question that is being answered is to end."""
        running = self._queue.running
        if running is not None and running.is_cancelled:
            raise Cancelled

    def _progressed(self, progress: WorkProgress) -> None:
        self.check()
        if self._reported is None:
            return
        request, began, reported = self._reported
        now = time.monotonic()
        if request.progress_token is None or now - reported < EVERY:
            return
        self._reported = (request, began, now)
        share = f": {100 * progress.done:.0f}%" if progress.done else ""
        # Several searches may follow each other in one question: time alone is sure to grow, as the protocol has it.
        body: dict[str, Any] = {"progressToken": request.progress_token, "progress": round(now - began, 3)}
        body["message"] = ascii(progress.what)[1:-1] + share
        self._send({"jsonrpc": "2.0", "method": "notifications/progress", "params": body})

    def _send(self, message: dict[str, object]) -> None:
        with self._lock:
            if self._is_broken:
                return
            try:
                self._write(encoded_line(message))
            except OSError:
                self._is_broken = True
                self._queue.end()
