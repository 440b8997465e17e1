"""`replaydbg bisect commits` names no wrong commit: verdicts that no longer hold, inputs that shift, foreign files."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import replaydbg
from replaydbg.commits import Question
from replaydbg.commits.fingerprint import key_of, parts_of
from replaydbg.commits.repository import Repository
from tests.harness.history import ENVIRONMENT, Change, git, make_history

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: a store and a cache of its own."""
    return home_in(tmp_path)


def home_in(folder: Path) -> dict[str, str]:
    (folder / "tmp").mkdir()
    places = {"XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
    return ENVIRONMENT | {name: str(folder / place) for name, place in places.items()}


def replaydbg_at(directory: Path, home: dict[str, str], *words: str, python: str = sys.executable) -> Any:
    command = [python, "-m", "replaydbg", *words]
    return subprocess.run(command, cwd=directory, env=home, capture_output=True, text=True, check=False)


def found(directory: Path, home: dict[str, str], *words: str, code: int = 1, python: str = sys.executable) -> Any:
    done = replaydbg_at(directory, home, "bisect", "commits", "--json", *words, python=python)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def suspects(facts: dict[str, Any]) -> list[str]:
    return [commit["subject"].removeprefix("Change ") for commit in facts["suspects"]]


def versions(count: int, text: Callable[[int], str], name: str = "mod.py") -> list[Change]:
    return [Change(f"v{number}", {name: f"{text(number)}\n# {number}\n"}) for number in range(1, count + 1)]


def recorded(directory: Path, home: dict[str, str], *program: str) -> str:
    path = directory.parent / "failure.rdbg"
    path.unlink(missing_ok=True)
    replaydbg_at(directory, home, "record", "-q", "-o", str(path), *program)
    return str(path)


# ---- verdicts and their dependencies ----

ASKS = """\
import os, sys
sys.path.append(os.path.dirname(__file__))
import helper, mod
limit = helper.LIMIT + int(open(os.path.join(os.path.dirname(__file__), "data.txt")).read()) + int(os.environ["LIM"])
limit += 0 * os.path.exists(os.path.join(os.path.dirname(__file__), "extra"))
limit += 0 * len(os.listdir(os.environ["LISTED"]))
assert mod.x < limit + int(sys.argv[1])
"""


class Asked:
    """A question whose answer depends on everything that a test changes."""

    def __init__(self, folder: Path, home: dict[str, str]) -> None:
        self.home = home | {
            "LIM": "0",
            "PYTHONPATH": f"{folder / 'repo'}:{folder / 'site'}",
            "LISTED": str(folder / "listed"),
        }
        self.folder = folder
        self.repository = make_history(folder / "repo", versions(2, "x = {}".format))
        self.options: list[str] = []
        self.argument = "2"
        self.python = sys.executable
        for name in ("outside", "site/pkg-1.dist-info", "listed"):
            (folder / name).mkdir(parents=True)
        for name, text in {"ask.py": ASKS, "helper.py": "LIMIT = 0\n", "data.txt": "0\n"}.items():
            (folder / "outside" / name).write_text(text)
        (self.repository / "carried.txt").write_text("carried\n")

    def reused(self) -> list[bool]:
        words = ["--good", "v1", "--bad", "v2", "--with", "carried.txt", *self.options]
        script = [str(self.folder / "outside" / "ask.py"), self.argument]
        facts = found(self.repository, self.home, *words, "--", *script, python=self.python)
        assert suspects(facts) == ["v2"]
        return [look["reused"] for look in facts["trials"]]


def other_python(asked: Asked) -> None:
    """Create an environment of the same Python elsewhere, with the packages of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", asked.folder / "other"], check=True)
    site = next((asked.folder / "other" / "lib").iterdir()) / "site-packages"
    paths = [str(Path(replaydbg.__file__).parents[1]), *(each for each in sys.path if "site-packages" in each)]
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in paths))
    asked.python = str(asked.folder / "other" / "bin" / "python")


def move_repository(asked: Asked) -> None:
    asked.repository = asked.repository.rename(asked.folder / "moved")
    asked.home["PYTHONPATH"] = f"{asked.repository}:{asked.folder / 'site'}"


CHANGES: dict[str, Callable[[Asked], object]] = {
    "script": lambda asked: (asked.folder / "outside" / "ask.py").write_text(ASKS + "# edited\n"),
    "local module": lambda asked: (asked.folder / "outside" / "helper.py").write_text("LIMIT = 0  # edited\n"),
    "shadowing module": lambda asked: (asked.folder / "site" / "helper.py").write_text("LIMIT = 0\n"),
    "data file": lambda asked: (asked.folder / "outside" / "data.txt").write_text("0 \n"),
    "file that was missing": lambda asked: (asked.folder / "outside" / "extra").mkdir(),
    "listed directory": lambda asked: (asked.folder / "listed" / "one").write_text(""),
    "command line": lambda asked: setattr(asked, "argument", "02"),
    "environment variable": lambda asked: asked.home.update(LIM="00"),
    "new variable": lambda asked: asked.home.update(NEW="1"),
    "installed package": lambda asked: (asked.folder / "site" / "pkg-1.dist-info").rename(
        asked.folder / "site" / "pkg-2.dist-info"
    ),
    "interpreter": other_python,
    "file that is taken along": lambda asked: (asked.repository / "carried.txt").write_text("edited\n"),
    "build": lambda asked: asked.options.extend(["--build", "true"]),
    "time limit": lambda asked: asked.options.extend(["--timeout", "500"]),
    "kind of failure": lambda asked: asked.options.append("--same-failure"),
    "repository": move_repository,
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """A question that was answered; each test adds a change and leaves it answered again."""
    folder = tmp_path_factory.mktemp("asked")
    asked = Asked(folder, home_in(folder))
    assert asked.reused() == [False, False]
    assert asked.reused() == [True, True]
    return asked


@pytest.mark.parametrize("change", CHANGES)
def test_no_verdict_is_used_after_what_it_depends_on_has_changed(asked: Asked, change: str) -> None:
    CHANGES[change](asked)

    assert asked.reused() == [False, False]
    assert asked.reused() == [True, True]


def test_the_key_names_the_tool_and_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(make_history(tmp_path / "repo", versions(2, str)))
    question = Question("v1", "v2", program=("run.py",))
    before = parts_of(repository, question)

    assert key_of(parts_of(repository, question)) == key_of(before)
    monkeypatch.setattr(replaydbg, "__version__", "9.9")
    after = parts_of(repository, question)

    assert {name for name in before if before[name] != after[name]} == {"version of replaydbg"}
    assert key_of(after) != key_of(before)


def test_a_search_without_an_answer_keeps_no_verdict_of_its_ends(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(3, "x = {}".format))
    switch = tmp_path / "switch"
    # Read in another process, where it is not observed.
    (tmp_path / "t.py").write_text(
        f"import subprocess, mod\nassert mod.x < 2 or subprocess.call(['test', '-e', {str(switch)!r}])\n"
    )
    home["PYTHONPATH"] = "."
    switch_words = ["--good", "v1", "--bad", "v3", "--", str(tmp_path / "t.py")]

    none = replaydbg_at(repository, home, "bisect", "commits", *switch_words)
    switch.write_text("")
    facts = found(repository, home, *switch_words)
    again = found(repository, home, *switch_words)

    assert none.returncode == 3 and "is not bad" in none.stderr
    assert suspects(facts) == ["v2"]
    assert any("other programs that it starts would not be noticed" in note for note in again["notes"])


def test_a_file_that_changes_while_the_search_runs_is_named(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(3, "x = {}".format))
    (tmp_path / "count").write_text("1")
    (tmp_path / "t.py").write_text(
        f"import mod\np = {str(tmp_path / 'count')!r}\nn = open(p).read()\nopen(p, 'w').write(n + '1')\n"
        "assert mod.x < 2\n"
    )

    facts = found(repository, home | {"PYTHONPATH": "."}, "--good", "v1", "--bad", "v3", "--", str(tmp_path / "t.py"))

    assert any("changed while the search ran" in note for note in facts["notes"])


def test_the_state_says_in_what_the_other_search_differs(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(2, "assert {} < 2".format))
    words = ["--good", "v1", "--bad", "v2", "--state", str(tmp_path / "state"), "--", "mod.py"]

    found(repository, home, *words)
    other = replaydbg_at(repository, home | {"NEW": "1"}, "bisect", "commits", *words)

    assert other.returncode == 2
    assert "they differ in: environment. --restart starts over." in other.stderr


def test_parents_of_the_culprit_are_looked_at_and_recorded(tmp_path: Path, home: dict[str, str]) -> None:
    """One of a merge's parents is only inferred to be good, because a descendant is."""
    right, wrong = {"run.py": "assert True\n"}, {"run.py": "assert False\n"}
    history = [
        Change("v1", right),
        Change("v2", {"a": ""}, ["v1"]),
        Change("v3", {"b": ""}, ["v2"]),
        Change("v4", {"c": ""}, ["v1"]),
        Change("v5", {"a": "", "c": "", **wrong}, ["v4", "v2"]),
        Change("v6", {"d": ""}, ["v5"]),
    ]
    repository = make_history(tmp_path / "repo", history)
    words = ["--good", "v3", "--bad", "v6", "--", "run.py"]

    facts = found(repository, home, *words)
    shutil.rmtree(tmp_path / "data")
    again = found(repository, home, *words)

    assert suspects(facts) == ["v5"]
    looked = {look["subject"].removeprefix("Change "): look["verdict"] for look in facts["trials"]}
    assert looked["v2"] == "good" and looked["v4"] == "good"
    assert again["recordings"]["bad"] and again["recordings"]["good"]


# ---- foreign files ----


def test_a_script_above_the_repository_is_copied_nowhere(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "home" / "a" / "repo", versions(4, "x = {}".format))
    (tmp_path / "home" / "t.py").write_text("import mod, sys\nassert mod.x < 2 and open(sys.argv[1])\n")
    (tmp_path / "home" / "data.txt").write_text("")
    foreign = tmp_path / "tmp" / "t.py"
    foreign.write_text("foreign\n")

    words = ["../../t.py", "../../data.txt"]
    facts = found(repository, home | {"PYTHONPATH": "."}, "--good", "v1", "--bad", "v4", "--", *words)

    assert suspects(facts) == ["v2"]
    assert foreign.read_text() == "foreign\n"
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == ["t.py"]


WORDS = ("bisect", "commits", "--good", "w1", "--bad", "w3")


def test_a_link_of_a_commit_leads_no_copy_out_of_the_worktree(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(3, "x = {}".format))
    outside = tmp_path / "foreign"
    outside.mkdir()
    (outside / "t.py").write_text("foreign\n")
    # At each commit `tools` is a link to a foreign directory, and `t.py` one to a foreign file.
    for number in range(3):
        git(repository, "checkout", "-q", f"v{number + 1}")
        (repository / "tools").symlink_to(outside)
        (repository / "t.py").symlink_to(outside / "t.py")
        git(repository, "add", ".")
        git(repository, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", f"w{number + 1}")
        git(repository, "tag", f"w{number + 1}")
    git(repository, "replace", "--graft", "w2", "w1")
    git(repository, "replace", "--graft", "w3", "w2")
    for name in ("tools", "t.py"):
        (repository / name).unlink()
    (repository / "tools").mkdir()
    for name in ("tools/t.py", "t.py"):
        (repository / name).write_text("import mod\nassert mod.x < 2\n")
    home["PYTHONPATH"] = "."

    through = replaydbg_at(repository, home, *WORDS, "--with", "tools/t.py", "--", "t.py")
    facts = found(repository, home, *WORDS[2:], "--with", "t.py", "--", "t.py")

    assert through.returncode == 3 and "leads out of the worktree" in through.stderr
    assert [commit["subject"] for commit in facts["suspects"]] == ["w2"]
    assert (outside / "t.py").read_text() == "foreign\n"


@pytest.mark.parametrize("path", [".", ".git"])
def test_the_whole_checkout_is_not_taken_along(tmp_path: Path, home: dict[str, str], path: str) -> None:
    repository = make_history(tmp_path / "repo", versions(2, str))

    done = replaydbg_at(repository, home, *f"bisect commits --good v1 --bad v2 --with {path} -- mod.py".split())

    assert done.returncode == 2 and "cannot be copied" in done.stderr


# ---- inputs that shift ----


def rolls(number: int, culprit: int = 3, harmless: int = 5) -> str:
    """The price is wrong for small numbers from `culprit` on; from `harmless` on one more number is drawn."""
    roll = "random.random(); return random.random()" if number >= harmless else "return random.random()"
    price = "-1 if p < 0.3 else 1" if number >= culprit else "1"
    return f"import random\ndef roll(): {roll}\ndef price(p): return {price}"


def failing(repository: Path, home: dict[str, str], *program: str) -> str:
    """Return a recording of a run that fails, which not every run does."""
    path = repository.parent / "failure.rdbg"
    for _ in range(60):
        path.unlink(missing_ok=True)
        if replaydbg_at(repository, home, "record", "-q", "-o", str(path), *program).returncode:
            return str(path)
    raise AssertionError("it never failed")


def test_one_more_random_number_is_no_culprit(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(6, rolls))
    (tmp_path / "t.py").write_text("import mod\np = mod.roll()\nassert mod.price(p) == 1\n")
    home["PYTHONPATH"] = "."
    recording = failing(repository, home, str(tmp_path / "t.py"))

    facts = found(repository, home, "--good", "v1", "--bad", "v6", "--replay", recording)

    assert suspects(facts) == ["v3"]
    told = {look["subject"].removeprefix("Change "): look for look in facts["trials"]}
    assert told["v1"]["random_numbers_shift"] == "it takes 1 random number, and 2 were taken in the recorded run"
    assert "does not fail with" in told["v2"]["why"] and "other seeds" in told["v2"]["why"]
    assert any("random numbers are drawn in a different order" in note for note in facts["notes"])


def test_random_numbers_that_have_not_shifted_are_no_doubt(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(6, lambda number: rolls(number, harmless=9)))
    # It draws more when it does not fail, and for the names of temporary files, and from a seed of its own.
    (tmp_path / "t.py").write_text(
        "import mod, random, tempfile\np = mod.roll()\nrandom.Random(5).random()\ntempfile.TemporaryFile()\n"
        "assert mod.price(p) == 1\nmod.roll()\n"
    )
    home["PYTHONPATH"] = "."
    recording = failing(repository, home, str(tmp_path / "t.py"))

    facts = found(repository, home, "--good", "v1", "--bad", "v6", "--replay", recording)

    assert suspects(facts) == ["v3"]
    assert facts["notes"] == []
    assert all(look["random_numbers_shift"] is None and look["clock_shift"] is None for look in facts["trials"])


def test_a_failure_that_only_the_recorded_numbers_show_is_a_range(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(4, lambda number: rolls(number, culprit=1, harmless=3)))
    # Only this one number fails: no other seed produces it again.
    (tmp_path / "t.py").write_text(
        "import mod, sys, os\np = mod.roll()\nopen(sys.argv[1], 'a').write(f'{p!r}\\n')\n"
        "assert repr(p) not in open(sys.argv[2]).read()\n"
    )
    home["PYTHONPATH"] = "."
    numbers, wrong = tmp_path / "numbers", tmp_path / "wrong"
    wrong.write_text("0.")
    recording = recorded(repository, home, str(tmp_path / "t.py"), str(numbers), str(wrong))

    done = replaydbg_at(repository, home, "bisect", "commits", "--good", "v1", "--bad", "v4", "--replay", recording)

    assert done.returncode == 3, done.stdout + done.stderr
    assert "first bad commit\n" not in done.stdout


def test_a_shift_of_the_clock_is_said(tmp_path: Path, home: dict[str, str]) -> None:
    def reads(number: int) -> str:
        first = "time.time(); " if number >= 3 else ""
        return f"import time\ndef now(): {first}return time.time()\ndef price(t): return {1 if number < 3 else -1}"

    repository = make_history(tmp_path / "repo", versions(4, reads))
    (tmp_path / "t.py").write_text("import mod\nassert mod.price(mod.now()) == 1\n")
    home["PYTHONPATH"] = "."
    recording = recorded(repository, home, str(tmp_path / "t.py"))

    facts = found(repository, home, "--good", "v1", "--bad", "v4", "--replay", recording)
    confirmed = found(repository, home, "--good", "v1", "--bad", "v4", "--replay", recording, "--confirm", "2")

    assert suspects(facts) == suspects(confirmed) == ["v3"]
    assert any("the clock is read in a different order than recorded" in note for note in facts["notes"])
    assert any("Confirmed by real runs: the program fails at" in note for note in confirmed["notes"])
    assert confirmed["recordings"]["bad"] and confirmed["recordings"]["good"]


def test_real_runs_refute_a_replay(tmp_path: Path, home: dict[str, str]) -> None:
    """The clock's second reading made the recorded run fail; older code reads it once, and fails at each real run."""

    def reads(number: int) -> str:
        first = "time.time_ns(); " if number >= 4 else ""
        price = "-1 if t > 2 else 1" if number >= 2 else "1"
        return f"import time\ndef now(): {first}return time.time_ns()\ndef price(t): return {price}"

    repository = make_history(tmp_path / "repo", versions(5, reads))
    (tmp_path / "t.py").write_text("import mod\nassert mod.price(mod.now()) == 1\n")
    home["PYTHONPATH"] = "."
    recording = recorded(repository, home, str(tmp_path / "t.py"))

    facts = found(repository, home, "--good", "v1", "--bad", "v5", "--replay", recording, "--confirm", "3")

    assert suspects(facts) == ["v2"]


# ---- conclusions from the recording, and data of the commit ----


def test_its_own_directories_are_known(tmp_path: Path, home: dict[str, str]) -> None:
    def makes(number: int) -> str:
        older = """\
    assert os.path.isdir(d) and not os.path.exists(d + '/sub') and os.getcwd() == os.path.realpath(os.getcwd())
    if not os.path.exists(d): os.mkdir(d)
    os.mkdir(d + '/sub')
    assert os.path.isdir(d + '/sub') and not os.path.exists(d + '/sub/x')
    os.rmdir(d + '/sub')
    assert not os.path.exists(d + '/sub')
"""
        newer = "    pathlib.Path(d).mkdir(exist_ok=True)\n    os.mkdir(d + '/sub'); os.rmdir(d + '/sub')\n"
        body = newer if number >= 3 else older
        return f"import os, pathlib\ndef make(d):\n{body}\ndef price(p): return {0 if number >= 5 else 'p'}"

    repository = make_history(tmp_path / "repo", versions(6, makes))
    (tmp_path / "t.py").write_text(
        "import tempfile, mod\nwith tempfile.TemporaryDirectory() as d:\n"
        "    mod.make(d)\n    assert mod.price(3) == 3\n"
    )
    home["PYTHONPATH"] = "."
    recording = recorded(repository, home, str(tmp_path / "t.py"))

    facts = found(repository, home, "--good", "v1", "--bad", "v6", "--replay", recording)

    assert suspects(facts) == ["v5"]


PACKAGE = (
    "import json, pathlib\nhere = pathlib.Path(__file__).parent\n"
    "RULES = json.loads((here / 'rules.json').read_text())\ndef price(x): return x * RULES['factor']\n"
)


def test_tracked_data_comes_from_the_commit_on_request(tmp_path: Path, home: dict[str, str]) -> None:
    history = [
        Change(f"v{number}", {"pkg/rules.json": json.dumps({"factor": 0 if number >= 4 else 2, "n": number})})
        for number in range(1, 7)
    ]
    history[0] = Change("v1", {"pkg/__init__.py": PACKAGE, **history[0].files})
    repository = make_history(tmp_path / "repo", history)
    (tmp_path / "t.py").write_text("import pkg\nassert pkg.price(5) == 10\n")
    home["PYTHONPATH"] = "."
    words = ["--good", "v1", "--bad", "v6", "--replay", recorded(repository, home, str(tmp_path / "t.py"))]

    none = replaydbg_at(repository, home, "bisect", "commits", *words)
    facts = found(repository, home, *words, "--data-from-commit")

    assert none.returncode == 3
    assert "'pkg/rules.json', which differs between the ends" in none.stderr and "--data-from-commit" in none.stderr
    assert suspects(facts) == ["v4"]


def test_data_that_newer_code_reads_first(tmp_path: Path, home: dict[str, str]) -> None:
    reads = "import pathlib\nVERSION = (pathlib.Path(__file__).resolve().parent / 'VERSION.txt').read_text().strip()\n"
    history = []
    for number in range(1, 7):
        head = reads if number >= 3 else f"VERSION = '1.{number}'\n"
        files = {"pkg/__init__.py": f"{head}def price(x): return {0 if number >= 2 else '2 * x'}\n"}
        history.append(Change(f"v{number}", files | ({"pkg/VERSION.txt": f"1.{number}\n"} if number >= 3 else {})))
    repository = make_history(tmp_path / "repo", history)
    (tmp_path / "t.py").write_text("import pkg, sys\nassert pkg.price(5) == 10\n")
    home["PYTHONPATH"] = "."
    git(repository, "checkout", "-q", "v2")
    recording = recorded(repository, home, str(tmp_path / "t.py"))

    facts = found(repository, home, *["--good", "v1", "--bad", "v6", "--data-from-commit", "--replay", recording])

    assert suspects(facts) == ["v2"]
    assert all(look["verdict"] != "undecided" for look in facts["trials"])


def test_recordings_of_two_commits_differ_in_a_source(tmp_path: Path, home: dict[str, str]) -> None:
    def price(number: int) -> str:
        return f"TAX = 1\ndef price(p): return {0 if number >= 3 else 'p'}"

    repository = make_history(tmp_path / "repo", versions(4, price))
    (tmp_path / "t.py").write_text("import mod\nassert mod.price(3) == 3\n")
    home["PYTHONPATH"] = "."
    kept = found(repository, home, "--good", "v1", "--bad", "v4", "--", str(tmp_path / "t.py"))["recordings"]

    done = replaydbg_at(repository, home, "bisect", "recordings", "-q", kept["good"], kept["bad"])
    facts = json.loads(
        replaydbg_at(repository, home, "bisect", "recordings", "--json", kept["good"], kept["bad"]).stdout
    )

    assert done.returncode == 1, done.stdout
    assert "Cause of the difference: the code" in done.stdout
    assert "mod.py:2: def price(p): return p in the good run, def price(p): return 0 in the bad run" in done.stdout
    assert "With the sources of the good run, the bad run passes." in done.stdout
    assert facts["outcome"] == "found" and facts["code"]["is_cause"]
    assert facts["code"]["changes"][0]["path"] == "mod.py" and facts["code"]["changes"][0]["line"] == 2


def test_sources_that_differ_and_are_no_cause(tmp_path: Path, home: dict[str, str]) -> None:
    repository = make_history(tmp_path / "repo", versions(2, "x = {}".format))
    (tmp_path / "t.py").write_text("import mod, sys\nassert open(sys.argv[1]).read() == 'good'\n")
    home["PYTHONPATH"] = "."
    paths = {}
    for tag, text in {"v1": "good", "v2": "bad"}.items():
        git(repository, "checkout", "-q", tag)
        (tmp_path / "input").write_text(text)
        paths[tag] = recorded(repository, home, str(tmp_path / "t.py"), str(tmp_path / "input"))
        paths[tag] = str(Path(paths[tag]).rename(tmp_path / f"{tag}.rdbg"))

    done = replaydbg_at(repository, home, "bisect", "recordings", "-q", paths["v1"], paths["v2"])

    assert done.returncode == 1, done.stdout
    assert "The code differs\n  mod.py:1: x = 1 in the good run, x = 2 in the bad run" in done.stdout
    assert "With the sources of the good run, the bad run still fails." in done.stdout
    assert "Cause of the difference (" in done.stdout
