"""The recording of a failing test is replayed against other code: every commit of a history, and today's."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from replaydbg.events.verdict import Verdict
from replaydbg.replay.edited_code import Judge
from tests.harness.history import ENVIRONMENT, Change, git, make_history
from tests.harness.plugin_runs import rerun_pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RIGHT, WRONG, BROKEN = "    return 2 * n\n", "    return 2 * n - odd()\n", "    return (\n"
PRICE = "import random\n\n\ndef odd():\n    return 1\n\n\ndef price(n):\n    random.random()\n"
TEST = """\
import time
import pytest
from shop.price import price

@pytest.fixture(scope="session")
def opened():
    return time.time()

def test_first(opened):
    assert opened

def test_unrelated(tmp_path):
    (tmp_path / "x").write_text("x")
"""
FAILING = """\

def test_price(opened, tmp_path):
    (tmp_path / "n").write_text("4")
    n = int((tmp_path / "n").read_text())
    total = price(n)
    assert total == 8, "wrong price"
"""


def steps(special: Mapping[int, str], culprit: int = 5, count: int = 8) -> list[Change]:
    """Return commits v1 to v8: wrong from v5 on; the test was written at v6, in a file that exists since v2."""
    found = []
    for number in range(1, count + 1):
        body = special.get(number, WRONG if number >= culprit else RIGHT)
        files = {"shop/__init__.py": "", "shop/price.py": f"{PRICE}{body}# {number}\n"}
        if number >= 2:
            files["tests/test_price.py"] = TEST + (FAILING if number >= 6 else "")
        if number >= 7:  # collected before it, and for a module that no earlier commit has
            files |= {
                "shop/extra.py": "x = 1\n",
                "tests/test_extra.py": "from shop.extra import x\ndef test_x(): pass\n",
            }
        found.append(Change(f"v{number}", files))
    return found


def captured(folder: Path, special: Mapping[int, str], *options: str) -> tuple[Path, Path]:
    """Return a clone of the repository, and the recording of the test that fails at its last commit.

    The repository in which it was made has been deleted.
    """
    made = make_history(folder / "made" / "shop", steps(special))
    ran = rerun_pytest(made, "-q", *options)
    assert ran.kept() == ["tests-test_price.py-test_price"], ran.output
    shutil.move(made / "test-results", folder / "downloaded")
    clone = folder / "mine" / "shop"
    git(folder, "clone", "--quiet", str(made), str(clone))
    shutil.rmtree(folder / "made")
    return clone, folder / "downloaded" / "tests-test_price.py-test_price" / "rec.rdbg"


def bisected(clone: Path, recording: Path, *words: str, code: int = 1) -> dict[str, Any]:
    folder = clone.parents[1]
    home = ENVIRONMENT | {"XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, "-m", "replaydbg", "bisect", "commits", "--json", "--good", "v1", "--bad", "v8"]
    command += ["--replay", str(recording), *words]
    done = subprocess.run(command, cwd=clone, env=home, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def suspects(facts: dict[str, Any]) -> list[str]:
    return [commit["subject"].removeprefix("Change ") for commit in facts["suspects"]]


def told(facts: dict[str, Any]) -> dict[str, str]:
    return {look["subject"].removeprefix("Change "): look["why"] for look in facts["trials"]}


@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_the_commit_that_made_a_test_fail(tmp_path: Path, options: list[str]) -> None:
    clone, recording = captured(tmp_path, {}, *options)

    facts = bisected(clone, recording)

    assert suspects(facts) == ["v5"]
    why = told(facts)
    assert why["v1"].startswith("no longer fails: the test passes (recorded: AssertionError: wrong price")
    assert why["v5"].startswith("still fails: AssertionError: wrong price")
    assert git(clone, "status", "--porcelain") == ""
    if not options:  # pytest's own deviations are left out
        assert all(len(look["deviations"]) <= 1 for look in facts["trials"]), facts


def test_what_does_not_load_cannot_be_told(tmp_path: Path) -> None:
    clone, recording = captured(tmp_path, {4: BROKEN})

    facts = bisected(clone, recording, code=3)

    assert suspects(facts) == ["v4", "v5"]
    assert told(facts)["v4"].startswith("its file cannot be loaded: SyntaxError: '(' was never closed")


def test_another_question(tmp_path: Path) -> None:
    clone, recording = captured(tmp_path, {6: RIGHT})

    facts = bisected(clone, recording, "--check", "price(3) == 6")

    assert suspects(facts) in (["v5"], ["v7"])


def test_todays_code(tmp_path: Path) -> None:
    repository = make_history(tmp_path / "shop", steps({}))
    ran = rerun_pytest(repository, "-q")
    recording = ran.recording("tests-test_price.py-test_price")
    price = repository / "shop" / "price.py"

    def verdict(body: str, check: str | None = None) -> tuple[Verdict, str]:
        price.write_text(PRICE + body)
        found = Judge(recording, check=check, stdout=2, stderr=2).judge()
        return found.verdict, found.sentence

    assert verdict("    return n + n\n")[0] is Verdict.GOOD
    assert verdict("    return 7\n")[0] is Verdict.BAD
    assert verdict("    raise KeyError(n)\n") == (
        Verdict.UNDECIDED,
        f"cannot test: fails differently: KeyError: 4 at {repository}/tests/test_price.py:18 "
        f"(recorded: AssertionError: wrong price at {repository}/tests/test_price.py:19)",
    )
    assert verdict("    return n + n\n", "price(1) == 2 and opened > 0")[0] is Verdict.GOOD
    assert verdict("    return n + n\n", "price(1) == 3")[0] is Verdict.BAD
    assert (
        verdict("    return n + n\n", "nothing")[1]
        == "cannot test: nothing raised NameError: name 'nothing' is not defined"
    )
    assert verdict("    return open('other.txt')\n")[1].startswith(
        "cannot test: The edited program needs an input that is not in the recording"
    )


CASE = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(code.f(), 2)\n"
SET_UP = "import pytest\n@pytest.fixture\ndef made(): assert code.f() == 2\ndef test_it(made): pass\n"
TEAR_DOWN = (
    "import pytest\n@pytest.fixture\ndef made():\n    yield\n    assert code.f() == 2\ndef test_it(made): pass\n"
)
SKIPS = "import pytest\ndef test_it():\n    if code.f() == 3: pytest.skip('no')\n    assert code.f() == 2\n"
RAISES = "def test_it():\n    if code.f() == 3: code.g()\n    assert code.f() == 2\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (CASE, {2: Verdict.GOOD, 3: Verdict.BAD}),
        (SET_UP, {2: Verdict.GOOD, 3: Verdict.BAD}),
        (TEAR_DOWN, {2: Verdict.GOOD, 3: Verdict.BAD}),
        (SKIPS, {3: Verdict.UNDECIDED}),
        (RAISES, {3: Verdict.UNDECIDED}),
    ],
)
def test_ways_to_fail(tmp_path: Path, source: str, expected: dict[int, Verdict]) -> None:
    (tmp_path / "coded.py").write_text("def f(): return 1\n")
    (tmp_path / "test_it.py").write_text("import coded as code\n" + source)
    ran = rerun_pytest(tmp_path, "-q")
    (name,) = ran.kept()
    for edited, wanted in expected.items():
        (tmp_path / "coded.py").write_text(f"def f(): return {edited}\n")

        found = Judge(ran.recording(name), stdout=2, stderr=2).judge()

        assert found.verdict is wanted, (edited, found)


def test_a_test_that_passed(tmp_path: Path) -> None:
    (tmp_path / "coded.py").write_text("def f(): return 2\n")
    (tmp_path / "test_it.py").write_text("import coded\ndef test_it(tmp_path):\n    assert coded.f() > 1\n")
    ran = rerun_pytest(tmp_path, "-q", mode="on")

    def sentence(number: int) -> str:
        (tmp_path / "coded.py").write_text(f"def f(): return {number}\n")
        return Judge(ran.recording("test_it.py-test_it"), stdout=2, stderr=2).judge().sentence

    assert sentence(3) == "passes, as recorded: the test passes"
    assert sentence(1).startswith("fails now: AssertionError: assert 1 > 1 at ")
