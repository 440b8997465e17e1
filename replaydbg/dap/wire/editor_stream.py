"""The two directions of a connection with an editor."""

from __future__ import annotations

import threading

from replaydbg.dap.wire.framing import encoded_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from replaydbg.dap.wire.editor_requests import EditorRequest

READ_AT_ONCE = 65536

_SHOWN = ("launch", "attach", "goto", "gotoTargets", "restartFrame", "seek")
"""The requests whose failure a client is to show: what fails for others is shown in its place, such as a hover."""


class EditorStream:
    """Sends messages, numbered, from any thread. A client that has gone away receives nothing, which is no error."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
        """`read` returns at most so many bytes, none at the end; `write` takes all. Both may raise OSError."""
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._seq = 0
        self.is_broken = False
        """Whether the client has gone away."""

    def read(self) -> bytes:
        """Return the next bytes; none: there are no more."""
        try:
            return self._read(READ_AT_ONCE)
        except OSError:
            return b""  # the client was killed: its end of the connection is reset

    def send_event(self, event: str, body: dict[str, Any] | None = None) -> None:
        """Send an event."""
        self._send({"type": "event", "event": event, "body": body or {}})

    def respond(self, request: EditorRequest, body: dict[str, Any] | None = None) -> None:
        """Send the result of a request."""
        request.is_answered = True
        answer = {"type": "response", "request_seq": request.seq, "success": True, "command": request.command}
        self._send(answer | ({"body": body} if body is not None else {}))

    def refuse(self, request: EditorRequest | None, text: str, *, message: str = "") -> None:
        """Send an error; None: it belongs to no request. `message`: a short word of the protocol for it.

        What comes after the response of a motion is printed. The text goes into a variable: names from a recording may
        have braces, which a client would replace.
        """
        # Imported here: a client waits for the first answer, which is seldom an error.
        from replaydbg.events.show import printable

        text = "\n".join(map(printable, text.split("\n")))
        if request is not None and request.is_answered:
            self.send_event("output", {"category": "important", "output": f"{text}\n"})
            return
        seq, command = (request.seq, request.command) if request is not None else (0, "")
        if request is not None:
            request.is_answered = True
        error = {"id": 1, "format": "{text}", "variables": {"text": text}, "showUser": command in _SHOWN}
        self._send(
            {
                "type": "response",
                "request_seq": seq,
                "success": False,
                "command": command,
                "message": message or text,
                "body": {"error": error},
            }
        )

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._seq += 1
            if self.is_broken:
                return
            try:
                self._write(encoded_message({"seq": self._seq, **message}))
            except OSError:
                self.is_broken = True
