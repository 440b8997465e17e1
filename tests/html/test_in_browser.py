"""Pages in headless Chromium at three widths and in both themes, checked by html-validate and axe-core.

`tox -e pages-html` installs what they need.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import NotBuilt
from replaydbg.pages.facts.collected import recording_of
from replaydbg.pages.facts.hidden_texts import HiddenTexts
from replaydbg.pages.facts.unreplayed import unreplayed
from replaydbg.pages.making import page_of_session
from replaydbg.pages.markup.page_document import failure_page
from tests.harness.recorded_group import BANK, record_program
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL
from tests.html.conftest import FIXTURES
from tests.html.test_hostile_pages import HOSTILE
from tests.html.test_page_limits import LONG, full_page

CHECK = Path(__file__).parent / "browser" / "check_page.mjs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("TEST_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        "TEST_NODE_MODULES" not in os.environ, reason="`tox -e pages-html` installs the packages from npm"
    ),
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium; TEST_CHROMIUM names one"),
]


def written(folder: Path, name: str, recording: Path) -> Path:
    page = folder / f"{name}.html"
    with Session(recording) as session:
        page.write_bytes(page_of_session(session, recording_of(session, f"{name}.rdbg")))
    return page


def check(*pages: Path, pictures: Path | None = None) -> list[dict[str, str]]:
    """Return the findings of the browser and of the validators."""
    command = ["node", str(CHECK), os.environ["TEST_NODE_MODULES"], CHROMIUM, str(pictures or "")]
    done = subprocess.run([*command, *map(str, pages)], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_pages_of_recordings(tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    (tmp_path / "group").mkdir()
    group = record_program(tmp_path / "group", BANK)
    pages = [
        written(tmp_path, "till", record_file(FIXTURES / "till_of_three_workers.py", tmp_path, status=1)),
        written(tmp_path, "hostile", record_file(tmp_path / "hostile.py", tmp_path, status=1)),
        written(tmp_path, "lanes", record_file(TRAVEL / "lanes_and_tasks.py", tmp_path)),
        written(tmp_path, "group", group / "1.rdbg"),
    ]
    bare = tmp_path / "bare.html"
    bare.write_bytes(failure_page(unreplayed(group / "1.rdbg", "bare", NotBuilt()), HiddenTexts([])))
    pictures = Path(os.environ["TEST_PICTURES"]) if "TEST_PICTURES" in os.environ else None

    assert check(*pages, bare, pictures=pictures) == []


@pytest.mark.parametrize("text", ["x", LONG], ids=["short", "long"])
def test_a_full_page(tmp_path: Path, text: str) -> None:
    page = tmp_path / "full.html"
    page.write_bytes(failure_page(full_page(text, 60), HiddenTexts([])))

    assert check(page) == []


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "wrong.html"
    page.write_text(
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>x</title></head><body style="color: #ccc">\n'
        '<p>faint</p><div style="width: 3000px">wide</div><img src="http://127.0.0.1:9/x.png"><script>oops()</script>\n'
        '<span class="value" style="display: block; width: 1em; overflow-wrap: anywhere">one letter a line</span>'
        "</body></html>\n"
    )

    told = " ".join(each["what"] for each in check(page))

    for each in (
        "axe color-contrast",
        "axe html-has-lang",
        "px wider",
        "a request: http",
        "script error",
        "html-validate",
    ):
        assert each in told, told
