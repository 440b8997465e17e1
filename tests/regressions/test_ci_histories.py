"""`replaydbg ci` over histories with merges, broken commits, builds and new modules; equal code has equal verdicts."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.history import Change, git
from tests.harness.regression_repository import RUN, Ground, changes, module, states, turns

pytestmark = pytest.mark.slow

WRONG, RIGHT = module(is_right=False), module(is_right=True)
BASE = {"shop/__init__.py": "", "shop/price.py": WRONG, "runs/price.py": RUN.format(name="price")}


def ground_of(top: Path, *history: Change) -> Ground:
    """Return a repository with this history, and a recording of its first commit."""
    ground = Ground.of(top, history)
    ground.record("runs/price.py", commit=history[0].tag)
    return ground


def test_a_commit_that_fails_differently_or_does_not_start(tmp_path: Path) -> None:
    ground = ground_of(
        tmp_path,
        Change("v1", BASE),
        Change("v2", {"shop/price.py": "def value(n):\n    raise KeyError(n)\n"}),
        Change("v3", {"shop/price.py": "def value(n):\n    return open('/nowhere')\n"}),
        Change("v4", {"shop/price.py": RIGHT}),
        Change("v5", {"shop/price.py": "def (\n"}),
    )

    facts = ground.ci("--commits", "v1..v5", code=0)

    assert states(facts) == {"run-1": "Fd?P?"}
    assert "it does not start: SyntaxError" in facts["recordings"][0]["verdicts"][4]["why"]
    assert turns(facts) == {"run-1": [("changed", "v2"), ("fixed", "v4")]}
    fixed = facts["recordings"][0]["changes"][1]
    assert fixed["suspects"] == [ground.name("v3"), ground.name("v4")]
    assert "/nowhere" in facts["recordings"][0]["verdicts"][2]["why"]


def test_a_fix_on_a_branch_is_found_there(tmp_path: Path) -> None:
    """A merge does what one of its sides did; the branch begins before the range."""
    ground = ground_of(
        tmp_path,
        Change("v1", BASE),
        Change("m1", {"README": "1"}),
        Change("m2", {"README": "2"}),
        Change("b1", {"notes": "1"}, parents=["v1"]),
        Change("b2", {"shop/price.py": RIGHT}, parents=["b1"]),
        Change("merge", {"README": "2", "shop/price.py": RIGHT}, parents=["m2", "b2"]),
        Change("after", {"README": "3"}),
    )

    facts = ground.ci("--commits", "m1..after", code=0)
    straight = ground.ci("--commits", "m1..after", "--first-parent", code=0)

    assert turns(facts) == {"run-1": [("fixed", "b2")]}
    assert turns(straight) == {"run-1": [("fixed", "merge")]}


def test_a_new_module_that_hides_another_one_is_other_code(tmp_path: Path) -> None:
    """No file that the replay read before has changed: only what its import finds."""
    run = "import sys\nsys.path.insert(0, '.')\nimport colorsys\nassert colorsys.ONE_THIRD == 2, 'wrong'\n"
    ground = ground_of(
        tmp_path,
        Change("v1", {"runs/price.py": run}),
        Change("v2", {"README": "2"}),
        Change("v3", {"colorsys.py": "ONE_THIRD = 2\n"}),
    )

    facts = ground.ci("--commits", "v1..v3", code=0)

    assert states(facts) == {"run-1": "FFP"}
    assert facts["verdicts"]["replayed"] == 2


def test_a_file_that_is_read_as_data_counts_with_data_from_commit(tmp_path: Path) -> None:
    run = "import json\nassert json.load(open('rate.json')) == 2, 'wrong'\n"
    ground = ground_of(
        tmp_path,
        Change("v1", {"runs/price.py": run, "rate.json": "1"}),
        Change("v2", {"README": "2"}),
        Change("v3", {"rate.json": "2"}),
    )

    recorded = ground.ci("--commits", "v1..v3")
    of_commit = ground.ci("--commits", "v1..v3", "--data-from-commit")

    assert states(recorded) == {"run-1": "FFF"}
    assert states(of_commit) == {"run-1": "FFP"}
    assert of_commit["verdicts"]["replayed"] == 2


def test_relative_import_paths_lead_from_where_the_program_ran(tmp_path: Path) -> None:
    run = "import sys\nsys.path[0] = '../src'\nfrom shop.price import value\nassert value(4) == 8, 'wrong'\n"
    ground = Ground.of(
        tmp_path,
        [
            Change("v1", {"app/run.py": run, "src/shop/__init__.py": "", "src/shop/price.py": WRONG}),
            Change("v2", {"README": "2"}),
            Change("v3", {"src/shop/price.py": RIGHT}),
        ],
    )
    git(ground.repository, "checkout", "--quiet", "v1")
    ground.tool("record", "--quiet", "run.py", directory=ground.repository / "app")
    git(ground.repository, "checkout", "--quiet", "main")

    facts = ground.ci("--commits", "v1..v3", code=0)

    assert states(facts) == {"run-1": "FFP"}
    assert facts["verdicts"]["replayed"] == 2


def test_a_data_file_that_a_later_commit_adds_counts(tmp_path: Path) -> None:
    """The commit that lacks it gets what was recorded, so one that has it is other code."""
    run = "import os, json\nrate = json.load(open('rate.json'))\nassert rate == 2, 'wrong'\n"
    ground = Ground.of(
        tmp_path,
        [
            Change("v1", {"runs/price.py": run, "rate.json": "1"}),
            Change("v2", {}, removed=["rate.json"]),
            Change("v3", {"rate.json": "2"}),
            Change("v4", {}, removed=["rate.json"]),
        ],
    )
    ground.record("runs/price.py", commit="v1")

    facts = ground.ci("--commits", "v1..v4", "--data-from-commit")

    assert states(facts) == {"run-1": "FFPF"}
    assert facts["verdicts"]["replayed"] == 3


def test_the_range_does_not_decide_what_is_known(tmp_path: Path) -> None:
    """Files that no end of the range has come from the recording: with other ends this is another question."""
    ground = ground_of(
        tmp_path,
        Change("v1", BASE),
        Change("v2", {"README": "2"}, removed=["runs/price.py"]),
        Change("v3", {"README": "3"}),
        Change("v4", {"runs/price.py": BASE["runs/price.py"]}),
    )

    whole = ground.ci("--commits", "v1..v4")
    part = ground.ci("--commits", "v2..v3")

    assert states(whole) == {"run-1": "F??F"}
    assert states(part) == {"run-1": "FF"}


def test_a_build_runs_once_for_a_commit_and_may_read_anything(tmp_path: Path) -> None:
    ground = ground_of(
        tmp_path / "ground",
        Change("v1", {**BASE, "version": "1"}),
        Change("v2", {"version": "2"}),
        Change("v3", {"version": "broken"}),
        Change("v4", {"version": "2"}),
    )
    ground.record("-c", (ground.repository / "runs" / "price.py").read_text(), commit="v1")
    log = tmp_path / "builds"
    build = (
        f"(cat version; echo) >> {log}; case $(cat version) in 1) ;; "
        "2) echo 'def value(n): return 8' > shop/price.py ;; "
        "*) echo 'no such version' ; exit 1 ;; esac"
    )

    facts = ground.ci("--commits", "v1..v4", "--build", build, "--jobs", "1")

    assert states(facts) == {"run-1": "FP?P", "run-2": "FP?P"}
    assert "it does not build: no such version" in facts["recordings"][0]["verdicts"][2]["why"]
    assert log.read_text().split() == ["2", "broken", "1"]  # v2 and v4 have equal trees


def test_a_script_that_is_in_no_commit_comes_from_its_recording(tmp_path: Path) -> None:
    ground = Ground.of(tmp_path, changes(4, {"price": (3, 4)}))
    script = ground.repository / "show.py"
    for text in (
        "from shop.price import value\nassert value(4) == 8\n",
        "from shop.price import value\n1 / (value(4) - 7)\n",
    ):
        script.write_text(text)
        ground.record("show.py")
    script.unlink()

    facts = ground.ci("--commits", "v1..v4", "--jobs", "1")

    assert states(facts) == {"run-1": "FFPP", "run-2": "FFPP"}


def test_recordings_of_tests(tmp_path: Path) -> None:
    test = "from shop.price import value\n\ndef test_value():\n    assert value(4) == 8\n"
    ground = Ground.of(tmp_path, changes(4, {"price": (3, 4)}, {1: {"test_price.py": test}}))
    git(ground.repository, "checkout", "--quiet", "v1")
    command = [sys.executable, "-m", "pytest", "-q", "--replaydbg=retain-on-failure", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "test_price.py"], cwd=ground.repository, env=ground.home, capture_output=True, check=False
    )
    git(ground.repository, "checkout", "--quiet", "main")

    facts = ground.ci("--commits", "v1..v4", "test-results", code=0)

    assert states(facts) == {"test_price.py-test_value/rec": "FFPP"}
    assert facts["verdicts"]["replayed"] == 2


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_from_equal_code_are_those_of_replays(tmp_path: Path, seed: int) -> None:
    """Random edits of what may matter: a state for each commit, in which nothing is reused, gives the same verdicts."""
    rng = random.Random(seed)
    texts = [WRONG, RIGHT, "def value(n):\n    return n / 0\n", "from shop.helper import value\n"]
    history = [Change("v1", {**BASE, "shop/helper.py": RIGHT, "README": "1"})]
    for number in range(2, 9):
        files = {}
        if rng.random() < 0.5:
            files["shop/price.py"] = rng.choice(texts)
        if rng.random() < 0.3:
            files["shop/helper.py"] = rng.choice(texts[:3])
        if rng.random() < 0.3:
            files[rng.choice(["shop/other.py", "price.py", "docs/index.md", "shop/__init__.py"])] = (
                f"NUMBER = {number}\n"
            )
        history.append(Change(f"v{number}", files or {"README": str(number)}))
    ground = ground_of(tmp_path, *history)

    together = ground.ci("--commits", "v1..v8")
    apart = [
        states(ground.ci("--commits", f"v{number}..v{number}", "--state", str(tmp_path / f"state-{number}")))["run-1"]
        for number in range(1, 9)
    ]

    assert states(together)["run-1"] == "".join(apart)


def test_texts_of_strangers_are_escaped_in_the_page(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[31m\u202e"
    ground = Ground.of(
        tmp_path,
        [
            Change("v1", {"evil.py": f"raise ValueError({evil!r})\n"}),
            Change("<b>v2</b>".replace("<", "lt").replace(">", "gt"), {"README": "2"}),
        ],
    )
    ground.record("evil.py", "<i>argument</i>", commit="v1")

    done = ground.tool("ci", "--last", "1", "--html", "night.html")

    page = (ground.repository / "night.html").read_text()
    assert "&lt;script&gt;alert(1)" in page and "&lt;i&gt;argument" in page
    assert not any(each in page for each in ("<script", "<img", "<i>", "\x1b", "\u202e"))
    assert "\x1b" not in done.stdout and "\u202e" not in done.stdout


def test_a_file_of_verdicts_that_is_damaged_or_foreign_is_made_anew(tmp_path: Path) -> None:
    ground = Ground.of(tmp_path / "ground", changes(4, {"price": (3, 4)}))
    ground.record("runs/price.py")
    words = ("--commits", "v1..v4", "--state", str(tmp_path / "state"))
    ground.ci(*words)
    path = tmp_path / "state" / "verdicts.jsonl"
    whole = path.read_bytes()

    lines = whole.splitlines(keepends=True)
    verdicts = [number for number, line in enumerate(lines) if b'"row":"verdict"' in line]
    lines[verdicts[0]] = lines[verdicts[0]].replace(b'"state":"', b'"state":"x')
    path.write_bytes(b"".join(lines))
    damaged = ground.ci(*words)
    path.write_bytes(whole[:-7])
    cut = ground.ci(*words)
    path.write_bytes(b"something else\n" + whole)
    foreign = ground.ci(*words)
    sound = ground.ci(*words)

    assert damaged["verdicts"]["replayed"] == 1
    unusable = f"1 of its {len(lines) - 1} lines cannot be used, and their verdicts are computed anew."
    assert damaged["notes"] == [f"{str(path)!r} is damaged: {unusable}"]
    assert cut["notes"] == []
    assert foreign["verdicts"]["replayed"] == 2
    assert "is not a file of verdicts that this version can read" in foreign["notes"][0]
    assert (tmp_path / "state" / "verdicts.jsonl.old").read_bytes().startswith(b"something else\n")
    assert sound["verdicts"]["replayed"] == 0 and sound["notes"] == []
    assert {json.dumps(states(each)) for each in (damaged, cut, foreign, sound)} == {'{"run-1": "FFPP"}'}
