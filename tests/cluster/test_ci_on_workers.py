"""`ci --scheduler`: the same verdicts as on this machine, kept between nights, whatever becomes of workers."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.local_cluster import LocalCluster
from tests.cluster.test_scheduler import OTHER, OTHER_PYTHON, needs_other_python
from tests.harness.build import with_header
from tests.harness.history import ENVIRONMENT, git, picture
from tests.harness.regression_repository import Ground, changes, states, turns
from tests.harness.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is missing: `tox -e cluster` has it"),
]

RIGHT = {"price": range(4, 12), "tax": (3, 4, 7, 8)}
WORDS = ("--commits", "v1..main")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a repository of eight commits and recordings of two bugs, made once."""
    top = tmp_path_factory.mktemp("made")
    ground = Ground.of(top, changes(8, RIGHT))
    for name in RIGHT:
        ground.record(f"runs/{name}.py")
    return top


@pytest.fixture
def ground(made: Path) -> Ground:
    """The same, with a cache of its own."""
    shutil.rmtree(made / "cache", ignore_errors=True)
    home = {"XDG_DATA_HOME": str(made / "data"), "XDG_CACHE_HOME": str(made / "cache"), "TMPDIR": str(made / "tmp")}
    return Ground(made / "shop", ENVIRONMENT | home)


def kept_verdicts(state: Path) -> int:
    path = state / "verdicts.jsonl"
    return path.read_text().count('"row":"verdict"') if path.exists() else 0


def start(ground: Ground, *words: str) -> subprocess.Popen[str]:
    """Start `replaydbg ci`, with a build that takes a moment: so there is time to disturb it."""
    return ground.start("ci", "--json", *WORDS, "--build", "sleep 0.3", *words)


def test_the_same_verdicts_and_the_next_night_computes_only_what_is_new(
    cluster: LocalCluster, ground: Ground, tmp_path: Path
) -> None:
    there = ("--scheduler", cluster.address, "--state", str(tmp_path))
    before = picture(ground.repository)

    first = ground.ci("--commits", "v1..v6", *there)
    later = ground.ci(*WORDS, *there)
    here = ground.ci(*WORDS)

    assert first["verdicts"] == {"replayed": 4, "equal": 8, "known": 0}
    assert later["verdicts"] == {"replayed": 0, "equal": 0, "known": 16}
    assert states(later) == states(here) == {"run-1": "FFFPPPPP", "run-2": "FFPPFFPP"}
    assert turns(later) == turns(here)
    assert picture(ground.repository) == before


def test_killed_workers_change_no_verdict(ground: Ground, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with LocalCluster(tmp_path / "cluster") as cluster:
        process = start(ground, "--scheduler", cluster.address, "--state", str(state))
        kills: list[bool] = []
        while len(kills) < 3:
            wait_until(lambda: process.poll() is not None or kept_verdicts(state) > 4 * len(kills))
            kills.append(cluster.kill_worker(len(kills) % 2))
        output, errors = process.communicate(timeout=200)

    assert process.returncode == 0, errors
    facts = json.loads(output)
    assert states(facts) == {"run-1": "FFFPPPPP", "run-2": "FFPPFFPP"}
    assert facts["verdicts"] == {"replayed": 16, "equal": 0, "known": 0}
    assert all(kills)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_is_continued(
    cluster: LocalCluster, ground: Ground, tmp_path: Path, number: signal.Signals
) -> None:
    words = ("--scheduler", cluster.address, "--state", str(tmp_path))
    process = start(ground, *words)
    wait_until(lambda: process.poll() is not None or kept_verdicts(tmp_path) >= 2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    kept = kept_verdicts(tmp_path)

    facts = ground.ci(*WORDS, "--build", "sleep 0.3", *words)

    assert process.returncode == -number
    if number is signal.SIGINT:
        assert errors == "replaydbg: interrupted; the verdicts are saved, and the same command continues from there.\n"
    assert 2 <= kept < 16
    assert facts["verdicts"] == {"replayed": 16 - kept, "equal": 0, "known": kept}
    assert git(ground.repository, "worktree", "list").count("\n") == 1


def test_a_scheduler_that_goes_away_costs_no_verdict(ground: Ground, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with LocalCluster(tmp_path / "cluster") as cluster:
        process = start(ground, "--scheduler", cluster.address, "--state", str(state))
        wait_until(lambda: process.poll() is not None or kept_verdicts(state) >= 2)
        cluster.scheduler.kill()
        _, errors = process.communicate(timeout=100)

    assert process.returncode == 2
    assert errors == f"replaydbg: The scheduler {cluster.address!r} no longer answers; the results so far are kept.\n"
    assert kept_verdicts(state) >= 2


def test_a_recording_of_another_python_is_inconclusive(cluster: LocalCluster, ground: Ground, tmp_path: Path) -> None:
    other = {"version": "3.11.99", "hexversion": 0x030B63F0, "executable": "/no/python", "prefix": "/no"}
    with_header(ground.store / "run-1.rdbg", tmp_path / "one.rdbg", lambda header: header["python"].update(other))
    words = ("--commits", "v7..main", "--scheduler", cluster.address, "--state", str(tmp_path / "state"))

    facts = ground.ci(*words, str(tmp_path / "one.rdbg"), "run-1", code=0)
    again = ground.ci(*words, str(tmp_path / "one.rdbg"), "run-1", code=0)

    assert list(states(facts).values()) == ["??", "PP"]
    reason = facts["recordings"][0]["verdicts"][0]["why"]
    assert reason.startswith("no worker of the cluster is fit for it; tcp://")
    assert "and the recording needs Python 3.11.99" in reason
    assert again["verdicts"] == {"replayed": 2, "equal": 0, "known": 2}, "what depends on the machine is not kept"


@needs_other_python
def test_workers_with_another_python_decide_nothing(ground: Ground, tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", workers=0) as cluster:
        cluster.add_worker(OTHER_PYTHON, "other", **OTHER)
        words = ("--scheduler", cluster.address, "--state", str(tmp_path / "state"))
        unfit = ground.ci("--commits", "v7..main", *words, code=3)
        cluster.add_worker(sys.executable, "fit")
        cluster.wait_for(2)
        fit = ground.ci("--commits", "v7..main", *words, code=0)

    assert states(unfit) == {"run-1": "??", "run-2": "??"}
    assert states(fit) == {"run-1": "PP", "run-2": "PP"}


def test_files_that_are_copied_go_along(cluster: LocalCluster, ground: Ground, tmp_path: Path) -> None:
    (ground.repository / "made.txt").write_text("made here")
    build = "test \"$(cat made.txt)\" = 'made here'"
    words = ("--commits", "v7..main", "--build", build, "--scheduler", cluster.address, "--state", str(tmp_path))

    without = ground.ci(*words, code=3)
    taken = ground.ci(*words, "--with", "made.txt", code=0)
    (ground.repository / "made.txt").unlink()

    assert states(without) == {"run-1": "??", "run-2": "??"}
    assert states(taken) == {"run-1": "PP", "run-2": "PP"}


def test_what_is_no_address(ground: Ground) -> None:
    done = ground.tool("ci", *WORDS, "--scheduler", "nonsense://x:1")

    assert done.returncode == 2
    assert done.stderr == "replaydbg: --scheduler must be an address such as tcp://host:8786 (got 'nonsense://x:1').\n"
