"""Each framework under each server: what failed is kept, with its moment, and replays; the rest leaves nothing."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.servers.applications import DJANGO_ASGI, DJANGO_WSGI, FASTAPI, FLASK

for _library in ("django", "fastapi", "flask", "gunicorn", "uvicorn"):
    pytest.importorskip(_library, reason="frameworks and servers are installed by `tox -e servers`")
pytestmark = pytest.mark.slow

_GUNICORN = ("-m", "gunicorn", "--bind=127.0.0.1:0", "application:app")
_UVICORN = ("-m", "uvicorn", "--host=127.0.0.1", "--port=0", "application:app")
SERVERS = {
    "flask-gunicorn": (FLASK, (*_GUNICORN, "--workers=2")),
    "flask-gunicorn-gthread": (FLASK, (*_GUNICORN, "--worker-class=gthread", "--threads=4")),
    "django-gunicorn": (DJANGO_WSGI, (*_GUNICORN, "--workers=1")),
    "fastapi-uvicorn": (FASTAPI, _UVICORN),
    "django-uvicorn": (DJANGO_ASGI, _UVICORN),
    "fastapi-uvicorn-workers": (FASTAPI, (*_UVICORN, "--workers=2")),
}
ADDRESS = re.compile(r"(?:Listening at: |running on )(http://127\.0\.0\.1:[0-9]+)")


class Server:
    """A recorded server on a free port."""

    def __init__(self, folder: Path, application: str, words: tuple[str, ...]) -> None:
        (folder / "application.py").write_text(application)
        self.folder, self.store, self.output = folder, folder / "store", folder / "output"
        self.env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(self.store)}
        command = [sys.executable, "-m", "replaydbg", "record", "-q", "--keep-failing-requests", *words]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=folder, env=self.env, stdout=output, stderr=output, start_new_session=True
            )
        found = wait_until(lambda: self._address() or self.process.poll() is not None, message=self.output.read_text)
        assert isinstance(found, str), self.output.read_text()
        self.address = found
        wait_until(self._accepts, message=self.output.read_text)  # uvicorn's workers listen later

    def _address(self) -> str | None:
        found = ADDRESS.search(self.output.read_text())
        return found[1] if found else None

    def _accepts(self) -> bool:
        host, _, port = self.address.removeprefix("http://").partition(":")
        with socket.socket() as client:
            return client.connect_ex((host, int(port))) == 0

    def get(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body of a response."""
        try:
            with urllib.request.urlopen(self.address + path, timeout=20) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, b""

    def stop(self) -> None:
        """Stop it as a supervisor does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) in (0, -signal.SIGTERM), self.output.read_text()

    def replaydbg(self, *words: str) -> Finished:
        """Run a command."""
        return run([sys.executable, "-m", "replaydbg", *words], cwd=self.folder, env=self.env, timeout=60)

    def requests(self) -> list[tuple[str, str]]:
        """Return the failed requests, with their results."""
        answer = self.replaydbg("requests", "run-1", "--failed", "--json")
        return [(each["request"], each["result"]) for each in json.loads(answer.stdout)["requests"]]

    def recordings(self) -> list[str]:
        """Return the names of the recordings that are left."""
        return sorted(path.name for path in self.store.rglob("*.rdbg"))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Return what starts a server, which is stopped in any case."""
    started: list[Server] = []

    def start(application: str, words: tuple[str, ...]) -> Server:
        started.append(Server(tmp_path, application, words))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)  # the server, too
            each.process.wait()


@pytest.mark.parametrize("name", SERVERS)
def test_a_failed_request_is_kept_and_replays(name: str, serve: Callable[..., Server]) -> None:
    server = serve(*SERVERS[name])

    assert [server.get(path) for path in ("/", "/boom", "/stream")] == [(200, b"ok"), (500, b""), (200, b"abc")]
    server.stop()

    [(request, result)] = server.requests()
    assert request == "GET /boom" and result in ("500", "ZeroDivisionError")
    rows = json.loads(server.replaydbg("requests", "run-1", "--failed", "--json").stdout)["requests"]
    recording = f"run-1/{rows[0]['process']}" if (server.store / "run-1.rdbgs").exists() else "run-1"
    stack = json.loads(server.replaydbg("seek", recording, "@failed:GET /boom", "--json").stdout)["stack"]
    assert "_Request.end" in [frame["function"] for frame in stack]
    replayed = server.replaydbg("replay", "-q", recording)
    assert replayed.status in (0, -signal.SIGTERM, 128 + signal.SIGTERM), replayed.stderr.decode()


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_without_failed_requests_leaves_nothing(name: str, serve: Callable[..., Server]) -> None:
    server = serve(*SERVERS[name])

    assert [server.get(path) for path in ("/", "/stream", "/nothing")] == [(200, b"ok"), (200, b"abc"), (404, b"")]
    server.stop()

    assert server.recordings() == [] and [*server.store.iterdir()] == [], server.output.read_text()


def test_recycled_workers_are_removed_while_the_server_runs(serve: Callable[..., Server]) -> None:
    server = serve(FLASK, (*_GUNICORN, "--workers=1", "--max-requests=3"))
    group = server.store / "run-1.rdbgs"
    paths = ["/"] * 3 + ["/", "/boom", "/"] + ["/"] * 3

    assert [server.get(path)[0] for path in paths] == [500 if path == "/boom" else 200 for path in paths]
    assert server.get("/")[0] == 200  # a worker that is just starting does not hear that it shall stop
    # Two of the three workers have passed.
    wait_until(lambda: not [number for number in (2, 4) if (group / f"{number}.rdbg-live").exists()])
    assert (group / "3.rdbg").exists() and server.process.poll() is None
    server.stop()

    assert server.recordings() == ["1.rdbg", "3.rdbg"]
    assert server.requests() == [("GET /boom", "500")]


def test_a_worker_that_hangs_is_kept(serve: Callable[..., Server]) -> None:
    """gunicorn ends a worker by SIGABRT if it does not answer in time."""
    hangs = FLASK.replace('return str(1 / orders["total"])', "import time; time.sleep(60)")
    server = serve(hangs, (*_GUNICORN, "--workers=1", "--timeout=2"))

    with suppress(OSError, http.client.HTTPException):
        assert server.get("/boom")[0] != 200
    assert server.get("/")[0] == 200  # by the next worker
    server.stop()

    assert server.recordings()[:2] == ["1.rdbg", "2.rdbg"]
    assert server.requests()[0][0] == "GET /boom"
