"""A client of the Debug Adapter Protocol for tests: it starts the server as an editor does."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.harness.surroundings import without_steering
from tests.harness.waiting import PATIENCE

COMMAND = [sys.executable, "-m", "replaydbg", "dap"]

Body = dict[str, Any]


class Refused(AssertionError):
    """The server answered a request with an error."""


class DapClient:
    """A client at the standard streams of a server of its own, or at a socket. Use it as a context manager."""

    def __init__(
        self,
        cwd: Path,
        *,
        command: list[str] | None = None,
        environ: Mapping[str, str] | None = None,
        connection: socket.socket | None = None,
    ) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        if connection is not None:
            file = connection.makefile("rwb", buffering=0)
            self._read: Callable[[int], bytes | None] = file.read
            self._write: Callable[[bytes], object] = connection.sendall
        else:
            pipe = subprocess.PIPE
            environ = {**without_steering(os.environ), **(environ or {})}
            process = subprocess.Popen(
                command or COMMAND, cwd=cwd, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
            )
            assert process.stdin is not None and process.stdout is not None
            self.process, self._read, self._write = process, process.stdout.read, process.stdin.write
        self.events: list[Body] = []
        """Every event, in order."""
        self.messages: list[Body] = []
        """Every message, in order."""
        self._seq = 0
        self._new: queue.SimpleQueue[Body | None] = queue.SimpleQueue()
        self._seen = 0
        threading.Thread(target=self._receive, daemon=True).start()

    def __enter__(self) -> DapClient:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up, and wait for the end of the server."""
        if self.process is None:
            return
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        try:
            self.process.stdin.close()
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()

    # ---- bytes ----

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._write(data)

    def send(self, command: str, arguments: Body | None = None) -> int:
        """Send a request, and return its number."""
        self._seq += 1
        message = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments or {}}
        self.send_bytes(framed(message))
        return self._seq

    def _receive(self) -> None:
        data = b""
        while piece := self._piece():
            data += piece
            while b"\r\n\r\n" in data:
                head, _, rest = data.partition(b"\r\n\r\n")
                length = int(head.removeprefix(b"Content-Length: "))
                if len(rest) < length:
                    break
                self._new.put(json.loads(rest[:length]))
                data = rest[length:]
        self._new.put(None)

    def _piece(self) -> bytes:
        try:
            return self._read(65536) or b""
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
            if message["type"] == "event":
                self.events.append(message)
        return message

    def response_to(self, seq: int) -> Body:
        """Return the response to a request."""
        for message in self.messages:
            if message["type"] == "response" and message["request_seq"] == seq:
                return message
        deadline = time.monotonic() + PATIENCE
        while (new := self.next_message(deadline - time.monotonic())) is not None:
            if new["type"] == "response" and new["request_seq"] == seq:
                return new
        raise AssertionError(f"the server hung up: {self._stderr()}")

    def request(self, command: str, **arguments: Any) -> Body:
        """Send a request and return the body of its response. Raises Refused."""
        response = self.response_to(self.send(command, arguments))
        if not response["success"]:
            raise Refused(response["body"]["error"]["variables"]["text"])
        body: Body = response.get("body", {})
        return body

    def refused(self, command: str, **arguments: Any) -> str:
        """Send a request that must be refused, and return the message."""
        response = self.response_to(self.send(command, arguments))
        assert not response["success"], response
        text: str = response["body"]["error"]["variables"]["text"]
        return text

    def event(self, name: str) -> Body:
        """Return the body of the next event of a name that was not returned yet."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for at in range(self._seen, len(self.events)):
                if self.events[at]["event"] == name:
                    self._seen = at + 1
                    body: Body = self.events[at]["body"]
                    return body
            assert self.next_message(deadline - time.monotonic()) is not None, f"no {name}: {self._stderr()}"

    def progress_of(self, seq: int) -> Body:
        """Return the body of the event that begins the progress of a request: opening may have had one of its own."""
        while (body := self.event("progressStart"))["requestId"] != seq:
            continue
        return body

    def _stderr(self) -> str:
        if self.process is None or self.process.stderr is None:
            return ""
        self.process.kill()
        return self.process.stderr.read().decode(errors="replace")

    @property
    def output(self) -> str:
        """Everything that was printed in the editor's console until now."""
        return "".join(each["body"]["output"] for each in self.events if each["event"] == "output")

    # ---- a debugging session ----

    def initialize(self, **more: Any) -> Body:
        """Introduce the client."""
        return self.request("initialize", clientID="tests", adapterID="replaydbg", **more)

    def attach(self, recording: Path | str, **more: Any) -> Body:
        """Open a recording, and return the first stop."""
        self.initialize()
        self.request("attach", recording=str(recording), **more)
        self.event("initialized")
        self.request("configurationDone")
        return self.event("stopped")

    def move(self, command: str, **more: Any) -> Body:
        """Do a motion of the main thread, and return the stop."""
        self.request(command, **{"threadId": self.main, **more})
        return self.event("stopped")

    @property
    def main(self) -> int:
        """The number of the first thread."""
        number: int = self.request("threads")["threads"][0]["id"]
        return number

    def stack(self, thread: int = 0) -> list[Body]:
        """Return the frames of a thread."""
        frames: list[Body] = self.request("stackTrace", threadId=thread or self.main)["stackFrames"]
        return frames

    @property
    def line(self) -> int:
        """The line of the innermost frame."""
        line: int = self.stack()[0]["line"]
        return line

    def local(self, frame: int = 0, scope: int = 0) -> dict[str, Body]:
        """Return the variables of a frame of the main thread by their names."""
        scopes = self.request("scopes", frameId=self.stack()[frame]["id"])["scopes"]
        return self.parts(scopes[scope]["variablesReference"])

    def parts(self, reference: int, **more: Any) -> dict[str, Body]:
        """Return variables by their names."""
        found = self.request("variables", variablesReference=reference, **more)["variables"]
        return {each["name"]: each for each in found}

    def console(self, line: str) -> str:
        """Type a line in the console, and return the answer."""
        frames = self.request("stackTrace", threadId=self.main, levels=1)["stackFrames"]
        frame = {"frameId": frames[0]["id"]} if frames else {}
        result: str = self.request("evaluate", expression=line, context="repl", **frame)["result"]
        return result


def framed(message: Body) -> bytes:
    """Return a message with its header."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
