"""Whatever a program was called, printed and computed, its page stays a page, and small; secrets are not on it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.pages.facts.collected import recording_of
from replaydbg.pages.making import page_of_session
from tests.harness import tool
from tests.harness.surroundings import without_steering
from tests.html.conftest import Export, Record
from tests.html.read_page import ReadPage, read_page

pytestmark = pytest.mark.slow
MARKUP = """<script>alert(1)</script><img src=x onerror=alert(2)>"'&amp;"""
HOSTILE = f"""
import threading
text = {MARKUP!r} + "\\x1b[31m\\x00\\u202e\\ud800" + "]]></style></title><!--"
class Bad:
    def __repr__(self): return text
bad = Bad()
named = threading.Thread(target=print, args=("from a thread", text.replace("\\ud800", "")), name=text)
named.start(); named.join()
print(text.encode("utf-8", "backslashreplace").decode(), flush=True)
def function(argument, bad):
    holder = {{text: bad}}
    raise type("Error<b>", (Exception,), {{}})(text, bad)  # <i>comment</i>
function(text, bad)
"""
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
SECRET = """
import os
token = os.environ["API_TOKEN"]
begun = token[:16]
headers = {"Authorization": f"Bearer {token}", "begun": begun, "<&>" + token: 1}
print("using", token)
raise RuntimeError(f"refused: {headers}")
"""


def test_markup_in_texts_of_the_program_is_shown_as_it_is(record: Record, export: Export, tmp_path: Path) -> None:
    recording = record(HOSTILE)

    done = export("--html", "page.html", recording)

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert MARKUP in page.text
    assert "\\x1b[31m\\x00\\u202e" in page.text
    assert page.source.count("<script>") == 1
    assert "<img" not in page.source


def test_secrets_are_masked_in_all_parts(record: Record, export: Export, tmp_path: Path) -> None:
    recording = record(SECRET, API_TOKEN=TOKEN)

    done = export("--html", "page.html", recording)

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert "Bearer " + "*" * len(TOKEN) in page.text
    assert TOKEN[:10] not in page.source
    assert "begun" in page.text


def test_secrets_are_masked_on_the_page_of_a_recording_that_was_not_sealed(tmp_path: Path, export: Export) -> None:
    (tmp_path / "prog.py").write_text(SECRET.replace("token)", "token, flush=True)\nwhile True: pass"))
    command = tool.record(sys.executable, tmp_path / "prog.rdbg", ["prog.py"])
    env = {**without_steering(os.environ), "API_TOKEN": TOKEN}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    with process.stdout:
        printed = process.stdout.readline()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    assert printed == b"using " + TOKEN.encode() + b"\n"

    done = export("--html", "page.html", next(tmp_path.glob("*-live")))

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert f"token = {'*' * len(TOKEN)}" in page.text.replace("'", "")
    assert TOKEN[:10] not in page.source


def test_a_deep_stack_has_its_ends_on_the_page(record: Record, export: Export, tmp_path: Path) -> None:
    recording = record(
        "import sys\nsys.setrecursionlimit(9000)\ndef down(n, text):\n    if n == 0:\n        1 / 0\n"
        "    down(n - 1, text)\ndown(3000, 'x' * 100_000)\n"
    )

    done = export("--html", "page.html", recording)

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert any(each.startswith("<module> prog.py:7") for each in page.rows)
    assert re.search(r"2,\d\d\d further frames are not on this page", page.text)


def test_much_output_and_endless_lines_are_cut(record: Record, export: Export, tmp_path: Path) -> None:
    recording = record(
        "import sys\nfor number in range(3000):\n    print('line', number)\n"
        "sys.stdout.write('z' * 20_000_000 + '\\nlast\\n')\nsys.stdout.flush()\n[][1]\n"
    )

    done = export("--html", "page.html", recording)

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert "2,852 earlier lines are not on this page" in page.text
    assert any(each.endswith("line 2999") for each in page.rows)
    assert any(each.endswith(":2last") or each.endswith("last") for each in page.rows)
    assert "z" * 300 in page.text
    assert "z" * 1001 not in page.text


def test_a_replay_that_differs_says_where(record: Record, tmp_path: Path) -> None:
    recording = record("import time, os\na = time.time()\nb = os.getcwd()\nprint('end')\n")
    (tmp_path / "prog.py").write_text("import time, os\na = time.time()\nb = time.monotonic()\nprint('end')\n")

    with Session(recording, current_source=True) as session:
        page = ReadPage(page_of_session(session, recording_of(session, "prog.rdbg")).decode())

    page.check()
    assert page.contents["h1"][0].startswith("The replay diverged from the recording here: event ")
    assert any(each.startswith("The replay diverged from the recording here: event ") for each in page.contents["p"])
    assert any("b = time.monotonic()" in each for each in page.rows)


def test_a_program_that_was_killed_shows_its_end(record: Record, export: Export, tmp_path: Path) -> None:
    recording = record("import os\nvalue = 7 * 6\nprint('before', flush=True)\nos.kill(os.getpid(), 9)\n")

    done = export("--html", "page.html", recording)

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert page.contents["p"][0] == f"End in {recording}"
    assert "signal 9 ended the program" in page.contents["h1"][0]
    assert any(each.endswith("before") for each in page.rows)
    assert any("value = 7 * 6value = 42" in each for each in page.rows)


def test_a_program_that_did_not_fail_shows_its_end(record: Record, export: Export, tmp_path: Path) -> None:
    recording = record("value = 1\nprint(value)\n")

    done = export("--html", "page.html", recording)

    assert (done.status, done.stdout) == (0, "page.html\n"), done
    page = read_page(tmp_path / "page.html")
    assert "No exception ended the program, so this page shows its end." in page.contents["p"]
    assert "replaydbg check" not in page.text
