"""A client of the Model Context Protocol for tests: it starts the server as an agent's client does."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.harness.surroundings import without_steering
from tests.harness.waiting import PATIENCE

COMMAND = [sys.executable, "-m", "replaydbg", "mcp"]

VERSION = "2025-11-25"
"""The version of the protocol that `initialize` asks for."""

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""What makes a request self-contained."""

Body = dict[str, Any]


class McpClient:
    """A client at the standard streams of a server of its own. Use it as a context manager."""

    def __init__(self, cwd: Path, *options: str, environ: Mapping[str, str] | None = None) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*COMMAND, *options],
            cwd=cwd,
            env={**without_steering(os.environ), **(environ or {})},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
        )
        self.messages: list[Body] = []
        """Every message, in order."""
        self.calls = 0
        """How many questions were asked."""
        self._id = 0
        self._new: queue.SimpleQueue[Body | None] = queue.SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()

    def __enter__(self) -> McpClient:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> int:
        """Hang up, wait for the end of the server, and return its exit code."""
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        try:
            self.process.stdin.close()
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()

    # ---- bytes ----

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        left = memoryview(data)
        while left:
            left = left[self.process.stdin.write(left) :]

    def send(self, message: object) -> None:
        """Send a message."""
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_request(self, method: str, params: object = None) -> int:
        """Send a request, and return its id."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": {} if params is None else params})
        return self._id

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def _receive(self) -> None:
        assert self.process.stdout is not None
        data = b""
        while piece := self._piece():
            data += piece
            *lines, data = data.split(b"\n")
            for each in lines:
                self._new.put(json.loads(each))
        self._new.put(None)

    def _piece(self) -> bytes:
        assert self.process.stdout is not None
        try:
            return self.process.stdout.read(65536) or b""
        except (OSError, ValueError):
            return b""

    # ---- messages ----

    def next_message(self, timeout: float = PATIENCE) -> Body | None:
        """Return the next message; None: the server has hung up. Fails after `timeout` seconds."""
        try:
            message = self._new.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no message came: {self.messages[-5:]}") from None
        if message is not None:
            self.messages.append(message)
        return message

    def response_to(self, number: int) -> Body:
        """Return the response to a request."""
        for message in self.messages:
            if message.get("id") == number:
                return message
        deadline = time.monotonic() + PATIENCE
        while (new := self.next_message(deadline - time.monotonic())) is not None:
            if new.get("id") == number:
                return new
        raise AssertionError(f"the server hung up: {self._stderr()}")

    def request(self, method: str, params: object = None) -> Body:
        """Send a request and return its result."""
        response = self.response_to(self.send_request(method, params))
        assert "result" in response, response
        body: Body = response["result"]
        return body

    def refused(self, method: str, params: object = None) -> Body:
        """Send a request that must be refused, and return the error."""
        response = self.response_to(self.send_request(method, params))
        assert "error" in response, response
        body: Body = response["error"]
        return body

    def begin(self) -> McpClient:
        """Introduce the client."""
        self.request("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "tests"}})
        self.notify("notifications/initialized")
        return self

    def _stderr(self) -> str:
        assert self.process.stderr is not None
        self.process.kill()
        return self.process.stderr.read().decode(errors="replace")

    # ---- questions ----

    def result(self, tool: str, **arguments: Any) -> Body:
        """Ask, and return the whole result."""
        self.calls += 1
        return self.request("tools/call", {"name": tool, "arguments": arguments, "_meta": MODERN})

    def ask(self, tool: str, **arguments: Any) -> Body:
        """Ask, and return the answer, which must have no problem."""
        result = self.result(tool, **arguments)
        assert not result["isError"], result["structuredContent"]
        body: Body = result["structuredContent"]
        return body

    def problem(self, tool: str, **arguments: Any) -> str:
        """Ask what cannot be answered, and return the reason."""
        result = self.result(tool, **arguments)
        assert result["isError"], result["structuredContent"]
        text: str = result["structuredContent"]["problem"]
        return text


def lines_of(answer: Body) -> list[str]:
    """Return all recorded lines of an answer."""
    return [line for topic in answer["recorded"].values() for line in topic]
