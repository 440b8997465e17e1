"""What commands write about a recording has none of its secrets in the clear: pages, reports, verdicts and heaps."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from replaydbg.heap.storage.recorded_snapshots import read_snapshot
from tests.harness.history import Change
from tests.harness.regression_repository import Ground

pytestmark = pytest.mark.slow

SECRET = "CiS3cret-Zq88"
# The message is cut off in some places, so the secret is, too.
PROGRAM = """import os
kept = "prefix " + os.environ["APP_PASSWORD"]
def login(password):
    raise ValueError({message} + password)
login(os.environ["APP_PASSWORD"])
"""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Return a repository with a program that fails with a secret, in two ways, and passed before."""
    texts = (PROGRAM.format(message=f"'{each} '") for each in ("bad password", "refused:"))
    history = [Change(f"v{number}", {"app.py": text}) for number, text in enumerate(["x = 1\n", *texts], 1)]
    ground = Ground.of(tmp_path_factory.mktemp("made"), history)
    replace(ground, home=ground.home | {"APP_PASSWORD": SECRET}).record("app.py", "--user", "me", commit="v2")
    return ground


def clear_places(*paths: Path) -> list[Path]:
    """Return the files that have the secret, or the beginning of it."""
    files = (each for path in paths for each in (path.rglob("*") if path.is_dir() else [path]) if each.is_file())
    return [each for each in files if SECRET[:8].encode() in each.read_bytes()]


def test_the_page_the_report_and_the_state_of_ci_are_masked(ground: Ground, tmp_path: Path) -> None:
    state, page = tmp_path / "state", tmp_path / "page.html"
    words = ("ci", "--last", "2", "--state", str(state), "--html", str(page), "run-1")

    tables = ground.tool(*words)
    known = ground.tool(*words, "--json")

    assert clear_places(tmp_path) == []
    masked = f"bad password {'*' * len(SECRET)} at"
    for text in (page.read_text(), (state / "verdicts.jsonl").read_text(), known.stdout):
        assert masked in text and f"refused: {'*' * len(SECRET)} at" in text
    assert SECRET not in tables.stdout + tables.stderr + known.stdout + known.stderr
    assert json.loads(known.stdout)["verdicts"]["known"] == 3


def test_reasons_with_secrets_in_an_older_state_are_masked(ground: Ground, tmp_path: Path) -> None:
    """Their checksum is that of what they say, so a file of an older version is made by masking nothing."""
    from replaydbg.regressions.verdict_file import _line, _row

    state = tmp_path / "state"
    words = ("ci", "--last", "2", "--state", str(state), "--json", "run-1")
    ground.tool(*words)
    rows = [_row(line) for line in (state / "verdicts.jsonl").read_text().splitlines()]
    for row in rows:
        if "why" in row:
            row["why"] = row["why"].replace("*" * len(SECRET), SECRET)
    (state / "verdicts.jsonl").write_text("".join(f"{_line(row)}\n" for row in rows))

    known = ground.tool(*words)

    assert json.loads(known.stdout)["verdicts"]["known"] == 3
    assert SECRET not in known.stdout and "*" * len(SECRET) in known.stdout


def test_the_state_of_a_bisection_is_masked(ground: Ground, tmp_path: Path) -> None:
    state = tmp_path / "bisection.json"

    ground.tool("bisect", "commits", "--good", "v1", "--bad", "v3", "--replay", "run-1", "--state", str(state))

    assert "*" * len(SECRET) in state.read_text()
    assert clear_places(tmp_path) == []


def test_a_heap_in_a_file_is_masked(ground: Ground, tmp_path: Path) -> None:
    path = tmp_path / "x.heap"

    done = ground.tool("heap", "run-1", "-o", str(path))

    assert done.returncode == 0, done
    texts = read_snapshot(path).strings
    found = [texts.raw(number) for number in range(len(texts))]
    assert not [each for each in found if SECRET[:8].encode() in each]
    assert [each for each in found if b"*" * len(SECRET) in each] != []
    # A replay, which has the secret, does not differ because of it.
    compared = ground.tool("diff", str(path), "run-1", "--json")
    assert "prefix" not in compared.stdout and "password" not in compared.stdout, compared.stdout
