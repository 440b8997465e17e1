"""A project whose program is recorded, and the test that is exported of its recording."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.surroundings import key_beside, without_steering


class Project:
    """A directory with `prog.py`, recorded once; and the exported test beside it."""

    def __init__(self, place: Path) -> None:
        self.root, self.place = place / "project", place
        self.root.mkdir()
        self.recording = place / "prog.rdbg"
        self.test = place / "tests" / "test_it.py"
        self.test.parent.mkdir()
        self._env = {**without_steering(os.environ), **key_beside(place)}

    def record(
        self, source: str, *words: str, stdin: bytes = b"", options: tuple[str, ...] = (), **env: str
    ) -> Outcome:
        """Record a program that is given as text."""
        (self.root / "prog.py").write_text(source, encoding="utf-8")
        return self.record_words(["prog.py", *words], stdin=stdin, options=options, **env)

    def record_words(
        self, words: list[str], *, stdin: bytes = b"", options: tuple[str, ...] = (), **env: str
    ) -> Outcome:
        """Record what a command line names."""
        command = tool.record(sys.executable, self.recording, words, options)
        return run(command, cwd=self.root, env={**self._env, **env}, stdin=stdin)

    def export(self, *words: str) -> Outcome:
        """Export the test."""
        return self.export_with("--test", str(self.test), *words)

    def export_with(self, *words: str) -> Outcome:
        """Run `replaydbg export` for the recording."""
        command = [sys.executable, "-m", "replaydbg", "export", *words, str(self.recording)]
        return run(command, cwd=self.place, env={**passed_on(), **key_beside(self.place)})

    def run_test(self) -> Outcome:
        """Run the test by pytest, where replaydbg cannot be imported."""
        blocked = self.place / "blocked"
        blocked.mkdir(exist_ok=True)
        (blocked / "replaydbg.py").write_text("raise ImportError('the test must not need it')\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(self.test)]
        env = {**passed_on(), "PYTHONPATH": str(blocked), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return run(command, cwd=self.place, env=env)

    def mend(self, before: str, after: str) -> None:
        """Replace a text in the program's source."""
        source = (self.root / "prog.py").read_text(encoding="utf-8")
        assert before in source
        (self.root / "prog.py").write_text(source.replace(before, after), encoding="utf-8")

    def assert_fails_with(self, line: str) -> None:
        """Export the test, and run it: the program in it must end with this last line."""
        done = self.export()
        assert done.status == 0, done
        ran = self.run_test()
        assert ran.status == 1 and f"\n{line}\n" in ran.stdout, ran


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


class Answers(BaseHTTPRequestHandler):
    """Answers each request with its path, its body, and the number of requests so far, as JSON."""

    protocol_version = "HTTP/1.1"
    count = 0

    def do_GET(self) -> None:
        type(self).count += 1
        length = int(self.headers.get("content-length", 0))
        body = b'{"path": "%s", "got": %d, "count": %d}' % (
            self.path.encode(),
            len(self.rfile.read(length)),
            type(self).count,
        )
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def http_server(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve `Answers` while the block runs, over TLS with `context`; yield the port."""
    handler = type("Handler", (Answers,), {"count": 0})
    server = HTTPServer(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
