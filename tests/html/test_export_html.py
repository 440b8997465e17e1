"""`replaydbg export --html`: usage, files, recordings that cannot be replayed, and groups."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tests.harness.children import CHILDREN, completed
from tests.harness.recorded_group import BANK
from tests.harness.replays import passed_on, run
from tests.html.conftest import Export, Record
from tests.html.read_page import read_page

pytestmark = pytest.mark.slow
FAILING = "wanted = [1, 2]\nindex = len(wanted)\nprint(wanted[index])\n"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def failing(record: Record) -> Path:
    return record(FAILING)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("prog.rdbg", "EXPR -o FILE (EXPR and -o FILE missing), or --html, --test, --perfetto or --speedscope FILE"),
        ("prog.rdbg index", "EXPR -o FILE (-o FILE missing), or --html, --test, --perfetto or --speedscope FILE"),
        ("prog.rdbg index --html x.html", "--html cannot be combined with EXPR or -o"),
        ("prog.rdbg --html x.html -o y", "--html cannot be combined with EXPR or -o"),
        ("prog.rdbg --html x.html --frame 1", "--html cannot be combined with --frame or --thread"),
        ("prog.rdbg --html missing/x.html", "'missing/x.html' cannot be written: No such file or directory."),
        ("nothing.rdbg --html x.html", "nothing.rdbg"),
        ("prog.rdbg --html x.html --at 99999", "99999"),
    ],
)
def test_a_usage_error_is_one_sentence(failing: Path, export: Export, tmp_path: Path, words: str, said: str) -> None:
    done = export(*words.split())

    assert (done.status, done.stdout) == (2, ""), done
    assert done.stderr.startswith("replaydbg: ") and done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "x.html").exists()


def test_the_page_is_private_and_replaces_an_earlier_one(failing: Path, export: Export, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("earlier")
    target.chmod(0o644)

    done = export(failing, "--html", "page.html", "--json")

    assert done.status == 0, done
    facts = json.loads(done.stdout)
    assert (facts["file"], facts["bytes"], facts["not_replayed"]) == ("page.html", target.stat().st_size, None)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "IndexError: list index out of range" in read_page(target).text


def test_a_damaged_recording_has_no_page(failing: Path, export: Export, tmp_path: Path) -> None:
    failing.write_bytes(failing.read_bytes()[:3000])

    done = export("--html", "page.html", failing)

    assert (done.status, done.stdout) == (1, ""), done
    assert "is damaged" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(("kind", "reason"), [("pure", "is not built"), ("darwin", "it runs on darwin")])
def test_without_the_core_a_page_has_what_needs_no_replay(
    failing: Path, tmp_path: Path, kind: str, reason: str
) -> None:
    words = ["export", "--html", "page.html", failing.name]
    command = [sys.executable, "-m", "tests.harness.pretended", kind, *words]
    done = run(command, cwd=tmp_path, env={**passed_on(), "PYTHONPATH": str(ROOT)})

    assert (done.status, done.stdout) == (0, "page.html\n"), done
    assert "the page has only what needs no replay" in done.stderr and reason in done.stderr
    page = read_page(tmp_path / "page.html")
    assert page.contents["h1"] == ["IndexError"]
    assert any("Source, values and stack are missing" in each and reason in each for each in page.contents["p"])
    assert any("stderr" in each or "write" in each for each in page.contents["tr"])
    assert f"replaydbg debug {failing.name}" in page.contents["code"]


def test_another_moment(failing: Path, export: Export, tmp_path: Path) -> None:
    done = export("--html", "page.html", "--at", "@start", "-q", failing)

    assert (done.status, done.stderr) == (0, ""), done
    assert read_page(tmp_path / "page.html").contents["p"][0] == f"Moment in {failing}"


def test_a_group_shows_the_process_that_failed_and_the_messages(record: Record, export: Export, tmp_path: Path) -> None:
    record(BANK + "assert total == 220\n", options=CHILDREN)
    made = tmp_path / "prog.rdbgs"
    completed(made)

    done = export("--html", "page.html", made.name)

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert page.contents["p"][0] == "Failure in prog.rdbgs/1.rdbg"
    assert "Processes of prog" in page.contents["h2"]
    assert any(each.startswith("Cut of prog: 1@") for each in page.contents["title"])
    assert any("sent by 2@" in each for each in page.rows)
    assert "process 2 (fork)" in page.contents["text"]
    assert any(each.startswith("2 fork of 1 at") or each.startswith("2fork of 1 at") for each in page.rows)


def test_a_child_that_failed_is_the_one_shown(record: Record, export: Export, tmp_path: Path) -> None:
    record("import os\nif not os.fork():\n    missing = {}\n    missing['x']\nos.wait()\n", options=CHILDREN)
    made = tmp_path / "prog.rdbgs"
    completed(made)

    done = export("--html", "page.html", made.name)

    assert done.status == 0, done
    page = read_page(tmp_path / "page.html")
    assert page.contents["p"][0] == "Failure in prog.rdbgs/2.rdbg"
    assert page.contents["h1"] == ["KeyError: 'x'"] or page.contents["h1"] == ["KeyError: x"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written(failing: Path, export: Export, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)

    done = export("--html", "closed/page.html", failing)

    assert (done.status, done.stderr.count("\n")) == (2, 1), done
    assert "'closed/page.html' cannot be written: Permission denied." in done.stderr
