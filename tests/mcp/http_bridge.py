"""The server behind HTTP, for clients that do not start it: the conformance suite tests servers at an address.

A session that begins with `initialize` has a server of its own; all other requests share one. Run it to serve at a free
port, which is printed, until standard input ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.harness.mcp_client import McpClient

SESSION = "Mcp-Session-Id"

STATUSES = {-32601: 404, -32602: 400, -32022: 400}
"""Statuses of HTTP for errors, since version 2026-07-28."""


def started() -> McpClient:
    """Return a server."""
    return McpClient(Path.cwd(), environ={"REPLAYDBG_STORE": os.environ["REPLAYDBG_STORE"]})


class Bridge(BaseHTTPRequestHandler):
    """Passes each message to the server of its session, and waits for the answer."""

    protocol_version = "HTTP/1.1"
    servers: dict[str, McpClient] = {}  # noqa: RUF012 - handlers are made for each connection
    lock = threading.Lock()

    def do_POST(self) -> None:
        """Pass a message on; `initialize` starts a server."""
        message: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._is_local():
            self._answer(403, None, "")
            return
        session, params = self.headers.get(SESSION, ""), message.get("params") or {}
        version = (params.get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion")
        is_modern = version is not None
        if is_modern and self.headers.get("MCP-Protocol-Version", version) != version:
            error = {"code": -32020, "message": "Header mismatch"}
            self._answer(400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error}, "")
            return
        if message.get("method") == "initialize" and not is_modern:
            session = uuid.uuid4().hex
            self.servers[session] = started()
        with self.lock:
            server = self.servers.get(session) or (self.servers.setdefault("", started()) if not session else None)
            if server is None:
                self._answer(404, None, "")
                return
            # Clients give the same ids.
            number = server.send_request(message["method"], message.get("params")) if "id" in message else None
            if number is None:
                server.notify(message["method"], **params)
                self._answer(202, None, session)
                return
            answer = server.response_to(number)
        status = STATUSES.get(answer.get("error", {}).get("code"), 200) if not session else 200
        self._answer(status, {**answer, "id": message["id"]}, session)

    def _is_local(self) -> bool:
        """Whether no page of another site has sent it."""
        names = [self.headers.get("Host", ""), self.headers.get("Origin", "http://localhost").partition("//")[2]]
        return all(each.partition(":")[0] in ("127.0.0.1", "localhost") for each in names)

    def do_GET(self) -> None:
        """Refuse a stream: the server sends nothing of its own accord."""
        self._answer(405, None, "")

    def do_DELETE(self) -> None:
        """End a session."""
        server = self.servers.pop(self.headers.get(SESSION, ""), None)
        if server is not None:
            server.close()
        self._answer(200, None, "")

    def _answer(self, status: int, message: dict[str, Any] | None, session: str) -> None:
        body = json.dumps(message).encode() if message is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header(SESSION, session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def main() -> None:
    """Serve until standard input ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Bridge) as server:
        print(server.server_port, flush=True)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        server.shutdown()
    for each in Bridge.servers.values():
        each.close()


if __name__ == "__main__":
    main()
