"""`replaydbg ci`: which commit fixed or broke which recording, incrementally, with a real repository and recordings."""

import shutil
import signal
from pathlib import Path

import pytest

from tests.harness.build import with_header
from tests.harness.history import ENVIRONMENT, git, picture
from tests.harness.regression_repository import Ground, changes, states, turns
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

RIGHT = {"price": range(4, 20), "tax": (3, 4, 7, 8, 9, 10), "total": range(6, 20)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a repository of ten commits and recordings of three bugs, made once."""
    top = tmp_path_factory.mktemp("made")
    ground = Ground.of(top, changes(10, RIGHT))
    for name in RIGHT:
        ground.record(f"runs/{name}.py")
    return top


@pytest.fixture
def ground(made: Path) -> Ground:
    """The same, with a cache of its own."""
    shutil.rmtree(made / "cache", ignore_errors=True)
    for left in (made / "tmp").iterdir():
        shutil.rmtree(left)
    home = {"XDG_DATA_HOME": str(made / "data"), "XDG_CACHE_HOME": str(made / "cache"), "TMPDIR": str(made / "tmp")}
    return Ground(made / "shop", ENVIRONMENT | home)


def test_it_finds_what_fixed_and_broke_each_recording_and_touches_nothing(ground: Ground) -> None:
    (ground.repository / "shop" / "price.py").write_text("raise SystemExit('the checkout ran')\n")
    before = picture(ground.repository)

    facts = ground.ci("--commits", "v1..main", code=0)

    assert turns(facts) == {
        "run-1": [("fixed", "v4")],
        "run-2": [("fixed", "v3"), ("broke", "v5"), ("fixed", "v7")],
        "run-3": [("fixed", "v6")],
    }
    assert states(facts) == {"run-1": "FFFPPPPPPP", "run-2": "FFPPFFPPPP", "run-3": "FFFFFPPPPP"}
    assert picture(ground.repository) == before
    assert list(ground.temporary.iterdir()) == []
    git(ground.repository, "checkout", "--", ".")


def test_equal_code_is_replayed_once(ground: Ground) -> None:
    facts = ground.ci("--commits", "v1..main", "--jobs", "3")

    # Each recording has two kinds of code, wherever they are in the history.
    assert facts["verdicts"] == {"replayed": 6, "equal": 24, "known": 0}


def test_the_next_night_computes_only_what_is_new(ground: Ground) -> None:
    first = ground.ci("--commits", "v1..v6")
    again = ground.ci("--commits", "v1..v6")
    later = ground.ci("--commits", "v1..main")

    assert first["verdicts"]["replayed"] == 6 and first["verdicts"]["known"] == 0
    assert again["verdicts"] == {"replayed": 0, "equal": 0, "known": 18}
    assert later["verdicts"] == {"replayed": 0, "equal": 0, "known": 30}
    assert states(later)["run-2"] == "FFPPFFPPPP"


def test_restart_computes_all_anew(ground: Ground) -> None:
    ground.ci("--commits", "v1..v4")

    facts = ground.ci("--commits", "v1..v4", "--restart")

    assert facts["verdicts"]["known"] == 0 and facts["verdicts"]["replayed"] == 5


def test_a_recording_that_was_fixed_and_fails_again_is_a_regression(ground: Ground) -> None:
    facts = ground.ci("--commits", "v1..v5", code=1)
    done = ground.tool("ci", "--commits", "v1..v5")

    regressions = {each["name"]: each["regression"] for each in facts["recordings"]}
    assert regressions == {"run-1": False, "run-2": True, "run-3": False}
    assert facts["outcome"] == "regression"
    assert f"regression: run-2 fails at {ground.name('v5')[:10]}, since {ground.name('v5')[:10]}" in done.stdout


def test_a_regression_is_known_from_an_earlier_night(ground: Ground) -> None:
    """The commit at which it passed may be outside of the range by then."""
    ground.ci("--commits", "v3..v4", code=0)

    facts = ground.ci("--commits", "v5..v6", code=1)

    (case,) = [each for each in facts["recordings"] if each["regression"]]
    assert case["name"] == "run-2"
    assert case["passed_at"] == ground.name("v4")


def test_last_counts_commits_of_the_checkout(ground: Ground) -> None:
    facts = ground.ci("--last", "3", "run-1")

    assert [commit["subject"] for commit in facts["commits"]] == [f"Change v{number}" for number in (7, 8, 9, 10)]
    assert [commit["base"] for commit in facts["commits"]] == [True, False, False, False]


def test_a_killed_run_loses_nothing_and_is_continued(ground: Ground, tmp_path: Path) -> None:
    state = tmp_path / "state"
    words = ("--commits", "v1..main", "--jobs", "1", "--state", str(state))
    first = ground.start("ci", *words)
    wait_until(lambda: _verdicts(state) >= 2)
    first.kill()
    first.communicate()
    left = list(ground.temporary.iterdir())

    kept = _verdicts(state)
    facts = ground.ci(*words)

    assert left != []
    assert facts["verdicts"]["replayed"] == 6 - kept
    assert turns(facts)["run-2"] == [("fixed", "v3"), ("broke", "v5"), ("fixed", "v7")]
    assert list(ground.temporary.iterdir()) == []
    assert git(ground.repository, "worktree", "list").count("\n") == 1


def _verdicts(state: Path) -> int:
    path = state / "verdicts.jsonl"
    return path.read_text().count('"row":"verdict"') if path.exists() else 0


def test_an_interrupted_run_says_that_it_goes_on(ground: Ground, tmp_path: Path) -> None:
    first = ground.start("ci", "--commits", "v1..main", "--jobs", "1", "--state", str(tmp_path))
    wait_until(lambda: _verdicts(tmp_path) >= 1)
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate()

    assert "interrupted; the verdicts are saved" in errors
    assert list(ground.temporary.iterdir()) == []


def test_two_runs_at_once_are_refused(ground: Ground, tmp_path: Path) -> None:
    first = ground.start("ci", "--commits", "v1..main", "--jobs", "1", "--state", str(tmp_path))
    wait_until(lambda: _verdicts(tmp_path) >= 1)
    second = ground.tool("ci", "--commits", "v1..main", "--state", str(tmp_path))
    first.communicate()

    assert second.returncode == 2
    assert (
        second.stderr == f"replaydbg: Another `replaydbg ci` is running with the state directory {str(tmp_path)!r}.\n"
    )
    assert first.returncode == 0


def test_one_page_without_network_or_scripts(ground: Ground, tmp_path: Path) -> None:
    page = tmp_path / "night.html"

    done = ground.tool("ci", "--commits", "v1..v5", "--html", str(page))

    text = page.read_text()
    assert done.returncode == 1
    assert "<script" not in text and "http://" not in text and "https://" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert text.count('<td class="verdict') == 15
    assert f"run-2 fails at {ground.name('v5')[:10]}" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Give the commits to test: --commits GOOD..BAD, or --last N."),
        (("--commits", "v1..v2", "--last", "2"), "Give the commits to test: --commits GOOD..BAD, or --last N."),
        (("--commits", "v1"), "--commits must be GOOD..BAD, such as v1.4..main (got 'v1')."),
        (("--commits", "v3..v1"), "'v1' is an ancestor of 'v3': give the older commit first."),
        (("--commits", "v1..nowhere"), "No commit 'nowhere' in this repository."),
        (("--last", "0"), "--last must be at least 1 (got 0)."),
        (("--last", "2", "--exception", "Other"), "No recording in the store failed and matches the options"),
        (("--last", "2", "run-99"), "No recording 'run-99'"),
        (("--last", "2", "--jobs", "-1"), "--jobs must be at least 1 (got -1)."),
        (("--last", "2", "--jobs", "0"), "--jobs must be at least 1 (got 0)."),
        (("--last", "2", "--html", "."), "--html cannot be '.': it is a directory."),
        (("--last", "2", "--html", "/proc/page.html"), "--html cannot be '/proc/page.html': its directory cannot be"),
        (("--last", "2", "--html", "no/page.html"), "--html cannot be 'no/page.html'"),
        (("--last", "2", "--with", "/etc/passwd"), "'/etc/passwd' is not in the checkout"),
        (("--last", "2", "--state", "/proc/state"), "The state directory '/proc/state' cannot be used"),
    ],
)
def test_bad_usage_gets_one_sentence(ground: Ground, words: tuple[str, ...], sentence: str) -> None:
    done = ground.tool("ci", *words)

    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_outside_a_repository(ground: Ground, tmp_path: Path) -> None:
    done = ground.tool("ci", "--last", "3", directory=tmp_path)

    assert done.returncode == 2
    assert "is in no git repository" in done.stderr


def test_recordings_are_selected_as_by_ls(ground: Ground) -> None:
    ground.tool("tag", "run-3", "slow")

    by_tag = ground.ci("--last", "1", "--tag", "slow")
    by_command = ground.ci("--last", "1", "--command", "tax.py")
    by_time = ground.tool("ci", "--last", "1", "--until", "2020-01-01")

    assert list(states(by_tag)) == ["run-3"]
    assert list(states(by_command)) == ["run-2"]
    assert by_time.returncode == 2


def test_a_directory_of_recordings_is_searched(ground: Ground, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "results" / name).mkdir(parents=True)
    shutil.copy(ground.store / "run-1.rdbg", tmp_path / "results" / "one" / "rec.rdbg")
    shutil.copy(ground.store / "run-2.rdbg", tmp_path / "results" / "two" / "rec.rdbg")

    facts = ground.ci("--commits", "v3..v4", str(tmp_path / "results"))

    assert states(facts) == {"one/rec": "FP", "two/rec": "PP"}


def test_the_same_recording_elsewhere_is_known(ground: Ground, tmp_path: Path) -> None:
    """Nights may run on fresh machines: neither the place of the recording nor that of the clone matters."""
    state = ("--state", str(tmp_path / "state"))
    ground.ci("--commits", "v1..main", "run-1", *state)
    shutil.copy(ground.store / "run-1.rdbg", tmp_path / "other.rdbg")
    git(ground.repository, "clone", "--quiet", ".", str(tmp_path / "clone"))
    clone = Ground(tmp_path / "clone", ground.home)

    facts = clone.ci("--commits", "v1..main", str(tmp_path / "other.rdbg"), *state)

    assert facts["verdicts"]["replayed"] == 0
    assert list(states(facts).values()) == ["FFFPPPPPPP"]


def test_what_cannot_be_tested_does_not_stop_the_others(ground: Ground, tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    shutil.copy(ground.store / "run-1.rdbg", recordings / "good.rdbg")
    (recordings / "foreign.rdbg").write_bytes(b"not a recording")
    (recordings / "cut.rdbg").write_bytes((ground.store / "run-1.rdbg").read_bytes()[:100])  # its header is cut off
    other = {"version": "3.9.1", "hexversion": 0x030901F0, "cache_tag": "cpython-39", "executable": "/no/python3.9"}
    with_header(ground.store / "run-1.rdbg", recordings / "python.rdbg", lambda header: header["python"].update(other))

    facts = ground.ci("--commits", "v3..v4", str(recordings))

    by_name = {each["name"]: each for each in facts["recordings"]}
    assert states(facts)["good"] == "FP"
    assert "not a recording" in by_name["foreign"]["problem"]
    assert by_name["cut"]["problem"]
    assert states(facts)["python"] == "??"
    assert "3.9.1" in by_name["python"]["verdicts"][0]["why"]
    again = ground.ci("--commits", "v3..v4", str(recordings))
    assert again["verdicts"] == {"replayed": 2, "equal": 0, "known": 2}  # a machine can get another Python


def test_nothing_that_can_be_tested_is_not_success(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "foreign.rdbg").write_bytes(b"not a recording")

    done = ground.tool("ci", "--last", "1", str(tmp_path / "recordings"))

    assert done.returncode == 3
    assert "1 of 1 recordings are inconclusive at the last commit." in done.stderr
