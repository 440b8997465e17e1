"""`replaydbg bisect commits`: it finds the right commit or none, and leaves the user's repository untouched."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.harness.history import ENVIRONMENT, Change, git, make_history, picture

pytestmark = pytest.mark.slow

RIGHT, WRONG, BROKEN = "def price(n):\n    return 2 * n\n", "def price(n):\n    return 2 * n - 1\n", "def (\n"
RUN = "from shop.price import price\nassert price(4) == 8, 'wrong price'\n"


def changes(count: int, culprit: int, special: dict[int, str] | None = None) -> list[Change]:
    """Return commits v1 to v<count>; the price is wrong from `culprit` on;

    `special` replaces texts of single commits.
    """
    found = []
    for number in range(1, count + 1):
        text = WRONG if number >= culprit else RIGHT
        text = (special or {}).get(number, text) + f"# {number}\n"
        found.append(Change(f"v{number}", {"shop/price.py": text, "shop/__init__.py": "", "run.py": RUN}))
    return found


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: a store and a cache of its own."""
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
    }


def bisect(directory: Path, home: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run `replaydbg bisect commits` there."""
    Path(home["TMPDIR"]).mkdir(exist_ok=True)
    command = [sys.executable, "-m", "replaydbg", "bisect", "commits", *words]
    return subprocess.run(command, cwd=directory, env=home, capture_output=True, text=True, check=False)


def found(directory: Path, home: dict[str, str], *words: str, code: int = 1) -> dict[str, Any]:
    """Return its result as data."""
    done = bisect(directory, home, "--json", *words)
    assert done.returncode == code, done.stdout + done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def suspects(facts: dict[str, Any]) -> list[str]:
    return [commit["subject"].removeprefix("Change ") for commit in facts["suspects"]]


def verdicts(facts: dict[str, Any]) -> dict[str, str]:
    return {look["subject"].removeprefix("Change "): look["verdict"] for look in facts["trials"]}


@pytest.mark.parametrize("jobs", [1, 3])
def test_finds_the_commit_and_touches_nothing(tmp_path: Path, home: dict[str, str], jobs: int) -> None:
    repository = make_history(tmp_path / "shop", changes(20, 13))
    (repository / "shop" / "price.py").write_text("raise SystemExit('the checkout ran')\n")
    (repository / "notes.txt").write_text("mine\n")
    before = picture(repository)

    facts = found(repository, home, "--good", "v1", "--bad", "main", "--jobs", str(jobs), "--", "run.py")

    assert suspects(facts) == ["v13"]
    assert facts["outcome"] == "found"
    assert "shop/price.py" in facts["stat"]
    assert verdicts(facts)["v13"] == "bad" and verdicts(facts)["v12"] == "good"
    if jobs == 1:
        # Both ends, and the logarithm of 19 commits.
        assert len(facts["trials"]) <= 2 + 5
    assert picture(repository) == before
    assert list((tmp_path / "tmp").iterdir()) == []
    store = tmp_path / "data" / "replaydbg" / "recordings"
    kept = {path.stem for path in store.iterdir()}
    assert kept == {facts["recordings"]["bad"], facts["recordings"]["good"]}
    assert len(kept) == 2


def test_says_it_to_people_and_for_a_pull_request(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))

    done = bisect(repository, home, "--good", "v1", "--bad", "v5", "--", "python", "run.py")
    again = bisect(repository, home, "--good", "v1", "--bad", "v5", "--md", "--", "python", "run.py")

    name = git(repository, "rev-parse", "v3").strip()
    assert f"{name} is the first bad commit" in done.stdout
    assert "Author: Ann <ann@example.org>" in done.stdout
    assert "exit code 1: AssertionError: wrong price" in done.stdout
    assert f"replaydbg debug bisect-{name[:10]}-bad" in done.stdout
    assert " replaydbg record -- run.py" in done.stdout
    assert done.stderr == ""
    assert again.stdout.startswith(f"**{name[:10]} is the first bad commit: Change v3**")
    assert "(known)" in again.stdout


def test_untestable_commits_are_no_bad_ones(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(16, 12, {number: BROKEN for number in (7, 8, 9)}))
    build = f"{sys.executable} -m compileall -q shop"

    facts = found(repository, home, "--good", "v1", "--bad", "v16", "--build", build, "--", "run.py")

    assert suspects(facts) == ["v12"]
    told = {look["subject"]: look["why"] for look in facts["trials"] if look["verdict"] == "undecided"}
    assert told and all("does not build" in why for why in told.values())


def test_what_cannot_be_told_apart_is_a_range(tmp_path: Path, home: dict[str, str]) -> None:
    skips = "import sys\nsys.exit(125)\n"
    repository = make_history(tmp_path / "shop", changes(16, 8, {number: skips for number in (7, 8, 9)}))

    facts = found(repository, home, "--good", "v1", "--bad", "v16", "--", "run.py", code=3)
    done = bisect(repository, home, "--good", "v1", "--bad", "v16", "--", "run.py")

    assert suspects(facts) == ["v7", "v8", "v9", "v10"]
    assert facts["outcome"] == "range" and facts["culprit"] is None
    assert done.returncode == 3
    assert "one of these 4, which cannot be distinguished" in done.stdout


def test_another_failure_is_said_and_can_be_left_out(tmp_path: Path, home: dict[str, str]) -> None:
    raises = 'raise RuntimeError("another one")\n'
    repository = make_history(tmp_path / "shop", changes(16, 12, {8: raises}))

    facts = found(repository, home, "--good", "v1", "--bad", "v16", "--", "run.py")
    exact = found(repository, home, "--good", "v1", "--bad", "v16", "--same-failure", "--", "run.py")

    assert suspects(facts) == ["v8"]
    assert "fails with exit code 1, RuntimeError, the bad end with exit code 1, AssertionError" in facts["notes"][0]
    assert suspects(exact) == ["v12"]


def test_a_commit_that_is_no_program_yet_is_no_bad_one(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(16, 12, {8: BROKEN}))

    facts = found(repository, home, "--good", "v1", "--bad", "v16", "--", "run.py")

    assert suspects(facts) == ["v12"]
    told = [look["why"] for look in facts["trials"] if look["verdict"] == "undecided"]
    assert told and "it does not start: exit code 1: SyntaxError" in told[0]


def merged(culprit: str) -> list[Change]:
    """v2 is merged with s1 and s2 of another branch into v3."""
    files = {"shop/price.py": RIGHT, "shop/__init__.py": "", "run.py": RUN}
    bad = {culprit: {"shop/price.py": WRONG}}
    return [
        Change("v1", files),
        Change("s1", bad.get("s1", {"s1": ""}), ["v1"]),
        Change("s2", bad.get("s2", {"s2": ""}), ["s1"]),
        Change("v2", bad.get("v2", {"v2": ""}), ["v1"]),
        Change("v3", {"shop/price.py": WRONG, "s1": "", "s2": ""}, ["v2", "s2"]),
        Change("v4", {"v4": ""}, ["v3"]),
    ]


@pytest.mark.parametrize("culprit", ["s1", "s2", "v2", "v3"])
def test_merges(tmp_path: Path, home: dict[str, str], culprit: str) -> None:
    repository = make_history(tmp_path / "shop", merged(culprit))

    facts = found(repository, home, "--good", "v1", "--bad", "v4", "--", "run.py")

    assert suspects(facts) == [culprit]


def test_first_parent_takes_a_merge_as_one_step(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", merged("s1"))

    facts = found(repository, home, "--good", "v1", "--bad", "v4", "--first-parent", "--", "run.py")

    assert suspects(facts) == ["v3"]
    assert "s1" not in verdicts(facts)


def test_a_good_end_on_another_branch(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", merged("v2"))
    git(repository, "tag", "side", "s2")

    facts = found(repository, home, "--good", "side", "--bad", "v2", "--", "run.py")

    assert suspects(facts) == ["v2"]
    assert "not an ancestor" in facts["notes"][0]


def test_repaired_where_the_good_end_is(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(
        tmp_path / "shop",
        [
            Change("old", {"shop/price.py": WRONG, "shop/__init__.py": "", "run.py": RUN}),
            Change("good", {"shop/price.py": RIGHT}, ["old"]),
            Change("bad", {"more": ""}, ["old"]),
        ],
    )

    done = bisect(repository, home, "--good", "good", "--bad", "bad", "--", "run.py")

    assert done.returncode == 3
    assert "their merge base, is bad" in done.stderr


KILLS = """\
import os, signal
# Somebody who waits for it reads until it has ended.
end = os.open(os.environ["END"], os.O_WRONLY)
if os.path.exists(os.environ["KILL"]):
    number = int(open(os.environ["KILL"]).read())
    os.remove(os.environ["KILL"])
    launcher = os.getppid()
    searcher = int(open(f"/proc/{launcher}/stat").read().rpartition(")")[2].split()[1])
    os.kill(searcher, number)
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_search_goes_on(tmp_path: Path, home: dict[str, str], number: signal.Signals) -> None:
    repository = make_history(tmp_path / "shop", changes(20, 13, {10: KILLS + RIGHT, 11: KILLS + RIGHT}))
    before = picture(repository)
    order = tmp_path / "kill"
    order.write_text(str(int(number)))
    home |= {"KILL": str(order), "END": str(tmp_path / "end")}
    os.mkfifo(home["END"])
    end = os.open(home["END"], os.O_RDONLY | os.O_NONBLOCK)
    words = ["--good", "v1", "--bad", "v20", "--state", str(tmp_path / "state.json"), "--", "run.py"]

    stopped = bisect(repository, home, *words)
    os.set_blocking(end, True)
    assert os.read(end, 1) == b"", "nothing that was started runs any more"
    os.set_blocking(end, False)
    if number != signal.SIGKILL:
        assert picture(repository) == before
        assert list((tmp_path / "tmp").iterdir()) == []
    facts = found(repository, home, *words)

    assert stopped.returncode in (-number, -signal.SIGINT)
    assert ("the same command continues" in stopped.stderr) == (number != signal.SIGKILL)
    assert suspects(facts) == ["v13"]
    assert {"v1", "v20"} <= {look["subject"][7:] for look in facts["trials"] if look["reused"]}
    assert picture(repository) == before
    assert list((tmp_path / "tmp").iterdir()) == []
    os.close(end)


def test_verdicts_are_kept_until_a_restart(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(6, 3))
    words = ["--good", "v1", "--bad", "v6"]

    found(repository, home, *words, "--", "run.py")
    again = found(repository, home, *words, "--", "run.py")
    anew = found(repository, home, *words, "--restart", "--", "run.py")

    assert all(look["reused"] for look in again["trials"])
    assert again["recordings"]["bad"] and again["recordings"]["good"]
    assert not any(look["reused"] for look in anew["trials"])


FLAKY = """\
import os
path = os.environ["COUNT"]
count = int(open(path).read()) + 1
open(path, "w").write(str(count))
assert {rule}, "flaky"
"""


def test_a_failure_that_comes_and_goes(tmp_path: Path, home: dict[str, str]) -> None:
    home["COUNT"] = str(tmp_path / "count")
    Path(home["COUNT"]).write_text("0")
    texts = [Change(f"v{n}", {"run.py": FLAKY.format(rule="count % 3" if n >= 5 else n)}) for n in range(1, 9)]
    repository = make_history(tmp_path / "flaky", texts)

    facts = found(repository, home, "--good", "v1", "--bad", "v8", "--runs", "30", "--", "run.py")

    assert suspects(facts) == ["v5"]
    ends = {look["subject"]: look for look in facts["trials"]}
    assert ends["Change v8"]["runs"] == 30 and ends["Change v8"]["failed"] == 10
    assert ends["Change v4"]["runs"] == facts["passes_needed"] >= 8
    assert 1 <= ends["Change v5"]["runs"] <= 3


def test_too_few_runs_for_a_rare_failure(tmp_path: Path, home: dict[str, str]) -> None:
    home["COUNT"] = str(tmp_path / "count")
    Path(home["COUNT"]).write_text("0")
    texts = [Change(f"v{n}", {"run.py": FLAKY.format(rule="count % 5")}) for n in range(1, 4)]
    repository = make_history(tmp_path / "flaky", texts)

    done = bisect(repository, home, "--good", "v1", "--bad", "v3", "--runs", "5", "--", "run.py")

    assert done.returncode == 3
    assert "1 of 5 runs failed" in done.stderr and "Use about --runs" in done.stderr


def test_the_order_of_sets_is_no_difference_between_commits(tmp_path: Path, home: dict[str, str]) -> None:
    home.pop("PYTHONHASHSEED", None)
    tells = "import os\nwith open(os.environ['SEEDS'], 'a') as file:\n    print(hash('a'), file=file)\n"
    home["SEEDS"] = str(tmp_path / "seeds")
    repository = make_history(tmp_path / "shop", changes(9, 6))
    (repository / "seed.py").write_text(tells + RUN)

    facts = found(repository, home, "--good", "v1", "--bad", "v9", "--", "seed.py")

    assert suspects(facts) == ["v6"]
    assert len(set(Path(home["SEEDS"]).read_text().split())) == 1
    assert any("PYTHONHASHSEED=" in command for command in facts["commands"])


def test_code_of_the_checkout_is_never_judged(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    script = tmp_path / "elsewhere.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(repository)!r})\n" + RUN)

    done = bisect(repository, home, "--good", "v1", "--bad", "v5", "--", str(script))

    assert done.returncode == 3
    assert "from the checkout, not from the commit" in done.stderr


def test_a_path_into_the_checkout_leads_into_the_worktree(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    script = tmp_path / "elsewhere.py"
    script.write_text(RUN)
    home["PYTHONPATH"] = str(repository)

    facts = found(repository, home, "--good", "v1", "--bad", "v5", "--", str(script))

    assert suspects(facts) == ["v3"]


def test_a_script_that_is_in_no_commit_comes_along(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    (repository / "new.py").write_text("import helper\n" + RUN)
    (repository / "helper.py").write_text("")

    facts = found(repository, home, "--good", "v1", "--bad", "v5", "--with", "helper.py", "--", "new.py")

    assert suspects(facts) == ["v3"]
    assert "copied into each worktree" in facts["notes"][0]


def test_a_program_that_hangs_cannot_be_judged(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(3, 3, {2: "import signal\nsignal.pause()\n"}))

    facts = found(repository, home, "--good", "v1", "--bad", "v3", "--timeout", "2", "--", "run.py", code=3)

    assert suspects(facts) == ["v2", "v3"]
    assert verdicts(facts)["v2"] == "undecided"


def recorded(directory: Path, home: dict[str, str], *program: str) -> str:
    """Return the path of a recording of a program that is run there."""
    path = str(directory.parent / "inputs.rdbg")
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", path, *program]
    subprocess.run(command, cwd=directory, env=home, capture_output=True, check=False)
    return path


READS = (
    "import sys, time\nfrom shop.price import price\nn = int(open(sys.argv[1]).read())\ntime.time()\ntotal = price(n)\n"
)


def test_recorded_inputs_against_each_commit(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(20, 13, {4: BROKEN, 10: "import nothing_like_it\n"}))
    (repository / "reads.py").write_text(READS + "assert total == 10, total\n")
    (tmp_path / "input.txt").write_text("5")
    recording = recorded(repository, home, "reads.py", str(tmp_path / "input.txt"))
    (tmp_path / "input.txt").unlink()
    (repository / "reads.py").unlink()
    before = picture(repository)

    facts = found(repository, home, "--good", "v1", "--bad", "v20", "--jobs", "2", "--replay", recording)

    assert suspects(facts) == ["v13"]
    assert picture(repository) == before
    told = {look["subject"]: look for look in facts["trials"]}
    assert told["Change v20"]["deviations"] == []
    assert any("skipped" in line for line in told["Change v1"]["deviations"])
    assert any(command.startswith(f"replaydbg check {recording}") for command in facts["commands"])
    assert any(command.startswith(f"cp {repository}/reads.py ") for command in facts["commands"])


def test_a_module_that_came_later_is_no_unchanged_source(tmp_path: Path, home: dict[str, str]) -> None:
    run = "try:\n    import extra\nexcept ImportError:\n    extra = None\nassert extra is not None, 'missing'\n"
    steps = [
        Change("v1", {"run.py": run, "extra.py": ""}),
        Change("v2", {"more": ""}),
        Change("v3", removed=["extra.py"]),
    ]
    repository = make_history(tmp_path / "extra", [*steps, Change("v4", {"more": "1"})])
    recording = recorded(repository, home, "run.py")

    facts = found(repository, home, "--good", "v1", "--bad", "v4", "--replay", recording)

    assert suspects(facts) == ["v3"]


def test_recorded_inputs_and_an_expression(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(12, 5))
    (repository / "reads.py").write_text(READS)
    (tmp_path / "input.txt").write_text("5")
    recording = recorded(repository, home, "reads.py", str(tmp_path / "input.txt"))
    repository.rename(tmp_path / "moved")

    words = ["--good", "v1", "--bad", "v12", "--replay", recording]
    facts = found(tmp_path / "moved", home, *words, "--check", "total == 10")
    none = bisect(tmp_path / "moved", home, *words)

    assert suspects(facts) == ["v5"]
    assert facts["check"] == "total == 10"
    assert none.returncode == 3 and "The bad end v12 is not bad (passes" in none.stderr


def test_a_recording_of_another_program(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    recording = recorded(repository, home, "-c", "print(1)")

    done = bisect(repository, home, "--good", "v1", "--bad", "v5", "--replay", recording)

    assert done.returncode == 2
    assert "is of a different program" in done.stderr


SENTENCES = [
    (["--good", "v1", "--bad", "v2"], 3, "The bad end v2 is not bad (exit code 0)"),
    (["--good", "v4", "--bad", "v5"], 3, "The good end v4 is not good (exit code 1: AssertionError: wrong price)"),
    (["--good", "v5", "--bad", "v1"], 2, "the good end must be the older one"),
    (["--good", "v1", "--bad", "v1"], 2, "are the same commit"),
    (["--good", "v1", "--bad", "v99"], 2, "No commit 'v99'"),
    (["--good", "--help", "--bad", "v5"], 2, ""),
    (["--good", "v1", "--bad", "v5", "--check", "x"], 2, "needs --replay"),
    (["--good", "v1", "--bad", "v5", "--runs", "0"], 2, "--runs and --jobs must be at least 1"),
    (["--good", "v1", "--bad", "v5", "--confidence", "1"], 2, "between 0 and 1"),
    (["--good", "v1", "--bad", "v5", "--with", "nothing"], 2, "not in the checkout"),
    (
        ["--good", "v1", "--bad", "v5", "--build", "false"],
        3,
        "Cannot test the bad end v5: it does not build",
    ),
    (["--good", "v1", "--bad", "v5", "--replay", "nothing.rdbg"], 2, "No recording 'nothing.rdbg'"),
]


@pytest.mark.parametrize(
    ("words", "code", "sentence"), SENTENCES, ids=[" ".join(words[1:]) for words, _, _ in SENTENCES]
)
def test_questions_without_an_answer(
    tmp_path: Path, home: dict[str, str], words: Sequence[str], code: int, sentence: str
) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))

    done = bisect(repository, home, *words, "--", "run.py")

    assert done.returncode == code
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert "first bad commit" not in done.stdout


def test_a_program_that_is_not_there(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))

    done = bisect(repository, home, "--good", "v1", "--bad", "v5", "--", "nothing.py")
    none = bisect(repository, home, "--good", "v1", "--bad", "v5")

    assert done.returncode == 3 and "No file and no command 'nothing.py' to record.\n" in done.stderr
    assert none.returncode == 2 and "Nothing to run" in none.stderr


def test_places_that_are_no_repository(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare")
    git(tmp_path, "clone", "--quiet", "--depth", "3", f"file://{repository}", "shallow")
    (tmp_path / "none").mkdir()
    words = ["--good", "v1", "--bad", "v5", "--", "run.py"]

    assert "in no git repository" in bisect(tmp_path / "none", home, *words).stderr
    assert "is a bare repository" in bisect(tmp_path / "bare", home, *words).stderr
    shallow = bisect(tmp_path / "shallow", home, "--good", "HEAD~3", "--bad", "HEAD", "--", "run.py")
    assert shallow.returncode == 2 and "git fetch --unshallow" in shallow.stderr
    without = bisect(repository, home | {"PATH": str(tmp_path / "none")}, *words)
    assert without.returncode == 2 and "git is not installed" in without.stderr


def test_the_state_of_another_search(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    state = ["--state", str(tmp_path / "state.json")]

    bisect(repository, home, "--good", "v1", "--bad", "v5", *state, "--", "run.py")
    other = bisect(repository, home, "--good", "v1", "--bad", "v4", *state, "--", "run.py")
    (tmp_path / "state.json").write_text("{")
    broken = bisect(repository, home, "--good", "v1", "--bad", "v4", *state, "--", "run.py")

    assert other.returncode == 2 and "--restart" in other.stderr
    assert broken.returncode == 2 and "cannot be read" in broken.stderr


def test_hooks_of_the_repository_do_not_run(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)

    facts = found(repository, home, "--good", "v1", "--bad", "v5", "--", "run.py")

    assert suspects(facts) == ["v3"]
    assert not (tmp_path / "ran").exists()


def test_within_a_git_hook_or_another_bisection(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    program = "import subprocess\nprint(subprocess.run(['git', 'rev-parse', '--show-toplevel'], check=True))\n" + RUN
    (repository / "asks.py").write_text(program)
    home |= {"GIT_DIR": str(repository / ".git"), "GIT_WORK_TREE": str(repository)}

    facts = found(repository, home, "--good", "v1", "--bad", "v5", "--", "asks.py")

    assert suspects(facts) == ["v3"]


def test_in_a_directory_of_the_repository(tmp_path: Path, home: dict[str, str]) -> None:
    texts = [Change(each.tag, {f"python/{path}": text for path, text in each.files.items()}) for each in changes(5, 3)]
    repository = make_history(tmp_path / "shop", texts)
    link = tmp_path / "link"
    link.symlink_to(repository)

    facts = found(link / "python", home, "--good", "v1", "--bad", "v5", "--", "run.py")

    assert suspects(facts) == ["v3"]


def test_code_that_is_compiled_under_a_relative_name(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    program = 'import runpy; assert runpy.run_path("shop/price.py")["price"](4) == 8'

    facts = found(repository, home, "--good", "v1", "--bad", "v5", "--", "-c", program)

    assert suspects(facts) == ["v3"]


def test_the_commands_that_reproduce_it_run_that_commit(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "shop", changes(5, 3))
    script = tmp_path / "elsewhere.py"
    script.write_text("import sys, built\n" + RUN + "assert sys.argv[1].endswith('/shop/price.py')\n")
    home["PYTHONPATH"] = str(repository)
    words = ["--build", "touch built.py", "--", str(script), str(repository / "shop" / "price.py")]

    done = bisect(repository, home, "--good", "v1", "--bad", "v5", *words)

    git(repository, "checkout", "-q", "v1")
    commands = done.stdout[done.stdout.index("git worktree add") :].splitlines()
    program = f'replaydbg() {{ {sys.executable} -m replaydbg "$@"; }}; export -f replaydbg; set -e\n'
    again = subprocess.run(
        ["bash", "-c", program + "\n".join(commands)],
        cwd=repository,
        env=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1, again.stderr
    assert "AssertionError: wrong price" in again.stderr
