"""The middleware marks requests and changes nothing, recorded and not."""

import json
import sys
from pathlib import Path

import pytest

from replaydbg.web import WSGIMiddleware
from tests.harness.process import run
from tests.observe.test_moment import command, recorded, seen
from tests.web.programs import ASGI, WSGI

pytestmark = pytest.mark.slow

WSGI_RESULTS = [
    ("GET /", "200", False),
    ("GET /stream", "200", False),
    ("GET /late", "503", True),
    ("GET /broken", "500", True),
    ("GET /raises", "ValueError", True),
    ("GET /exits", "SystemExit", True),
    ("GET /failing", "KeyError", True),
    ("GET /close", "OSError", True),
    ("GET /file", "200", False),
    ("GET /sized", "200", False),
    ("GET /strange", "Strange", False),
    ("GET /silent", "none", True),
    ("GET /silently", "none", True),
    ("GET /stream", "200", False),
    ("GET /silently", "none", False),
]
ASGI_RESULTS = [
    ("GET /", "200", False),
    ("GET /broken", "500", True),
    ("GET /raises", "ValueError", True),
    ("GET /failing", "KeyError", True),
    ("GET /waits", "CancelledError", False),
    ("GET /silent", "none", True),
    ("GET /gone", "none", False),
    ("WEBSOCKET /talk", "close", False),
    ("WEBSOCKET /lost", "ConnectionError", True),
    ("WEBSOCKET /silent", "none", True),
]


def printed(folder: Path, text: str, *words: str) -> str:
    """Return what a program prints, unrecorded."""
    (folder / "plainly.py").write_text(text)
    finished = run([sys.executable, "plainly.py", *words], cwd=folder, env={}, timeout=60)
    assert finished.status == 0, finished.stderr.decode()
    return finished.stdout.decode()


@pytest.mark.parametrize(("text", "results"), [(WSGI, WSGI_RESULTS), (ASGI, ASGI_RESULTS)], ids=["wsgi", "asgi"])
def test_requests_are_marked_and_pass_through_unchanged(
    text: str, results: list[tuple[str, str, bool]], tmp_path: Path
) -> None:
    plainly = printed(tmp_path, text, "plain")

    assert printed(tmp_path, text) == plainly
    assert recorded(tmp_path, text) == plainly
    rows = json.loads(command(tmp_path, "requests", "one.rdbg", "--json").stdout)["requests"]
    assert [(each["request"], each["result"], each["has_failed"]) for each in rows] == results
    assert [each["number"] for each in rows] == list(range(1, len(rows) + 1))
    failing = next(each for each in rows if each["result"] == "KeyError")
    assert "_Request.__init__" in seen(tmp_path, f"@request:{failing['number']} GET /failing")
    assert seen(tmp_path, failing["begin"]) == seen(tmp_path, f"@request:{failing['number']} GET")
    assert "_Request.end" in seen(tmp_path, "@failed:GET /failing")


def test_only_failed_requests_are_listed_on_demand(tmp_path: Path) -> None:
    recorded(tmp_path, WSGI)

    lines = command(tmp_path, "requests", "one.rdbg", "--failed").stdout.decode().splitlines()

    assert [line.split("\t")[2:4] for line in lines] == [list(each[:2]) for each in WSGI_RESULTS if each[2]]


def test_without_a_failed_request_a_message_says_so(tmp_path: Path) -> None:
    text = """from replaydbg.web import WSGIMiddleware
served = WSGIMiddleware(lambda environ, start: start("200 OK", []) or [])
served({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *_: None)
"""
    recorded(tmp_path, text)

    finished = command(tmp_path, "requests", "one.rdbg", "--failed")

    assert (finished.status, finished.stdout) == (0, b"")
    assert finished.stderr == b"replaydbg: none of the requests in one.rdbg failed (1 request).\n"


def test_a_request_that_never_ends_counts_as_failed(tmp_path: Path) -> None:
    text = """import os
from replaydbg.web import WSGIMiddleware
WSGIMiddleware(lambda *_: os._exit(0))({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, print)
"""
    recorded(tmp_path, text)

    lines = command(tmp_path, "requests", "one.rdbg", "--failed").stdout.decode().splitlines()

    assert [line.split("\t")[1:4] for line in lines] == [["1", "GET /", "never ended"]]


def test_a_recording_that_ends_early_is_reported(tmp_path: Path) -> None:
    text = """import os
from replaydbg.web import WSGIMiddleware
served = WSGIMiddleware(lambda environ, start: start("500 Broken", []) or [os.urandom(200_000)])
for number in range(20):
    served({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *_: None)
"""
    (tmp_path / "program.py").write_text(text)
    assert command(tmp_path, "record", "--max-size", "1M", "-o", "one", "program.py").status == 0

    as_text, as_json = (command(tmp_path, "requests", "one.rdbg", *words) for words in ([], ["--json"]))

    report = "one ends before its program did: the recording reached its size limit. Later requests are missing"
    assert report in as_text.stderr.decode()
    assert [report in each for each in json.loads(as_json.stdout)["incomplete"]] == [True]


def test_a_request_that_has_not_ended_yet_is_reported(tmp_path: Path) -> None:
    text = """import os, subprocess, sys
from replaydbg.web import WSGIMiddleware
def application(environ, start_response):
    command = [sys.executable, "-m", "replaydbg", "requests", "latest"]
    print(subprocess.run(command, capture_output=True, text=True).stderr)
    start_response("200 OK", [])
    return []
WSGIMiddleware(application)({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *_: None)
"""
    (tmp_path / "program.py").write_text(text)

    finished = command(tmp_path, "record", "--children", "none", "program.py")

    assert finished.stdout == b"replaydbg: run-1 is still being recorded: what has not ended in it may end yet.\n\n"


def test_names_from_strangers_are_bounded_and_printable(tmp_path: Path) -> None:
    paths = ["/a b\n\x1b[2J", "/" + "x" * 5000, "/" + "\x00" * 5000, "/\u00c3\u00a4", 7, '/"\\']
    text = f"""from replaydbg.web import WSGIMiddleware
served = WSGIMiddleware(lambda environ, start: start("500 \\n", []) or [])
for path in {paths!r}:
    served({{"REQUEST_METHOD": "M" * 99, "PATH_INFO": path}}, lambda *_: None)
"""
    recorded(tmp_path, text)

    rows = json.loads(command(tmp_path, "requests", "one.rdbg", "--json").stdout)["requests"]

    assert len(rows) == len(paths) and all(each["result"] == "500" for each in rows)
    assert all(each["request"].isprintable() and len(each["request"]) < 240 for each in rows)
    shown = [each["request"].partition(" ")[2] for each in rows]
    assert shown[0] == "/a%20b\\n\\x1b[2J" and shown[3] == "/\u00e4" and shown[5] == '/"\\'


def test_without_the_middleware_there_are_no_requests(tmp_path: Path) -> None:
    recorded(tmp_path, 'import replaydbg; replaydbg.moment("request", "no number"); replaydbg.moment("failed", "7 x")')

    finished = command(tmp_path, "requests", "one.rdbg")

    assert (finished.status, finished.stdout) == (0, b"")
    assert b"one.rdbg has no requests: only an application with the middleware" in finished.stderr


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("@failed:GET", b"'@failed:GET': no failed request has this text; `replaydbg requests` lists them."),
        ("@request:PUT", b"'@request:PUT': no request has this text; `replaydbg requests` lists them."),
        ("@cell:1", b"'@cell:1': no cell with this number ran."),
        ("@request", b"'@request': known names: @start, @end, @last, @exc, @out:N, @KIND:TEXT, @t+SECONDS."),
    ],
)
def test_a_moment_that_no_request_has_is_an_error(tmp_path: Path, moment: str, said: bytes) -> None:
    recorded(tmp_path, "")

    finished = command(tmp_path, "seek", "-q", "one.rdbg", moment)

    assert (finished.status, finished.stderr) == (2, b"replaydbg: No such moment " + said + b"\n")


def test_outside_a_recording_the_application_itself_answers() -> None:
    body = iter([b"a"])

    assert WSGIMiddleware(lambda *_: body)({}, print) is body
