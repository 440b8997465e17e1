"""`--scheduler`: the same verdicts as on this machine, whatever becomes of workers and of the scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cluster.open_pool import open_pool
from replaydbg.cluster.questions.commit_tasks import AtCommit, CommitTasks
from replaydbg.cluster.tasks import results
from tests.cluster.failing_runs import make_repository, names_of, record_runs
from tests.cluster.local_cluster import LocalCluster
from tests.harness.history import picture
from tests.harness.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is missing: `tox -e cluster` has it"),
]

ROOT = Path(__file__).parents[2]
OTHER_PYTHON = os.environ.get("TEST_OTHER_PYTHON", "")
"""An interpreter of another version that has dask and what replaydbg imports; `tox -e cluster` makes one."""
needs_other_python = pytest.mark.skipif(
    not OTHER_PYTHON or not Path(OTHER_PYTHON).exists(),
    reason="TEST_OTHER_PYTHON names no other Python with dask",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("shop") / "shop")


@pytest.fixture(scope="module")
def recordings(repository: Path) -> list[Path]:
    return record_runs(repository, repository.parent / "runs", 3)


def command(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line of replaydbg, with a cache and a store beside the directory."""
    environment = dict(os.environ) | {
        "XDG_CACHE_HOME": str(cwd.parent / "cache-home"),
        "REPLAYDBG_STORE": str(cwd.parent / "store"),
    }
    return subprocess.run(
        [sys.executable, "-m", "replaydbg", *map(str, words)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def verdicts(
    address: str, repository: Path, recordings: list[Path], seen: Callable[[int], object] = lambda count: None
) -> dict[tuple[str, str], str]:
    """Return the verdict and reason of each recording at each commit; an empty address: on this machine.

    `seen` is called after each with the number of results.
    """
    names = names_of(repository)
    with open_pool(address, jobs=2) as pool:
        make = CommitTasks(repository, names)
        found = {}
        for each in results(pool, [make.task(path, name) for path in recordings for name in names]):
            assert isinstance(each.task.question, AtCommit)
            assert each.task.recording is not None
            found[each.task.recording.name, each.task.question.commit] = f"{each.verdict.value}: {each.reason}"
            seen(len(found))
    return found


def test_killed_workers_change_no_verdict(repository: Path, recordings: list[Path], tmp_path: Path) -> None:
    here = verdicts("", repository, recordings)
    before = picture(repository)

    with LocalCluster(tmp_path / "cluster") as cluster:
        # By their number, not by time: on a busy machine a worker needs long to start again.
        kills: list[bool] = []

        def kill(count: int) -> None:
            if count % 4 == 0:
                kills.append(cluster.kill_worker(len(kills) % 2))

        there = verdicts(cluster.address, repository, recordings, kill)

    assert there == here
    assert {each.partition(":")[0] for each in there.values()} == {"good", "bad"}
    assert any(kills)
    assert picture(repository) == before


def test_the_commit_is_found_on_workers(cluster: LocalCluster, repository: Path, recordings: list[Path]) -> None:
    words = ["bisect", "commits", "--good", "v1", "--bad", "v8", "--replay", recordings[0], "--restart", "--json"]
    before = picture(repository)

    here = command(*words, cwd=repository)
    there = command(*words, "--scheduler", cluster.address, cwd=repository)

    assert (here.returncode, there.returncode) == (1, 1), there.stderr
    assert json.loads(there.stdout)["culprit"] == json.loads(here.stdout)["culprit"]
    assert picture(repository) == before


def test_the_program_is_run_on_workers_and_its_recordings_come_back(cluster: LocalCluster, repository: Path) -> None:
    words = ["bisect", "commits", "--good", "v1", "--bad", "v8", "--restart", "--json", "--scheduler", cluster.address]

    found = command(*words, "--", "run.py", "2", cwd=repository)

    assert found.returncode == 1, found.stderr
    name = json.loads(found.stdout)["culprit"]["commit"]
    assert name == names_of(repository)[7]
    replayed = command("replay", f"bisect-{name[:10]}-bad", cwd=repository)
    assert "ZeroDivisionError" in replayed.stderr


def test_the_code_of_today_goes_along(cluster: LocalCluster, repository: Path, recordings: list[Path]) -> None:
    shop = repository / "shop.py"
    code = shop.read_text()
    words = ["check", recordings[0], recordings[1], "--scheduler", cluster.address]

    broken = command(*words, cwd=repository)
    shop.write_text("from helper import total\n")
    (repository / "helper.py").write_text("def total(count):\n    return count\n")
    repaired = command(*words, cwd=repository)
    shop.write_text(code)
    (repository / "helper.py").unlink()

    assert broken.returncode == 1
    assert sorted(line.partition(": ")[2][:21] for line in broken.stdout.splitlines()) == ["still fails: ZeroDivi"] * 2
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert repaired.stdout.count("no longer fails: exit code 0") == 2


def test_a_flaky_program_is_caught_on_workers(cluster: LocalCluster, tmp_path: Path) -> None:
    # It depends on the hash seed, which dask sets for its workers.
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "words.py").write_text("WORDS = {'a', 'b', 'c', 'd'}\n")
    (tmp_path / "program" / "flaky.py").write_text("import words\nassert next(iter(words.WORDS)) not in 'ab'\n")

    words = ["hunt", "--scheduler", cluster.address, "-o", tmp_path / "caught", "--json", "flaky.py"]
    caught = command(*words, cwd=tmp_path / "program")

    assert caught.returncode == 0, caught.stderr
    assert "AssertionError" in command("replay", tmp_path / "caught" / "fail.rdbg", cwd=tmp_path / "program").stderr
    assert command("replay", tmp_path / "caught" / "pass.rdbg", cwd=tmp_path / "program").returncode == 0


def test_cuts_have_the_same_values(cluster: LocalCluster, tmp_path: Path) -> None:
    bank = ROOT / "fixtures" / "cuts" / "bank.py"
    command("record", "-q", "-o", tmp_path / "bank", "--children=python", bank, "20", cwd=tmp_path)
    words = ["bisect", "cuts", "-q", "--json", tmp_path / "bank.rdbgs", "--local", "bank.balance", "--all"]
    words += ["--holds", "total == 3000", "--channel", "0 if b'end' in m else sum(map(int, m.split()))"]

    here = command(*words, cwd=tmp_path)
    there = command(*words, "--scheduler", cluster.address, cwd=tmp_path)

    assert here.returncode == there.returncode == 3, there.stderr
    assert json.loads(there.stdout) == json.loads(here.stdout)
    assert "good" in {each["verdict"] for each in json.loads(there.stdout)["evaluated"]}


def test_nothing_is_sent_twice(cluster: LocalCluster, repository: Path, recordings: list[Path]) -> None:
    def sent() -> int:
        return (cluster.directory / "cluster.txt").read_text().count("'receive'")

    verdicts(cluster.address, repository, recordings[:1])
    before = sent()
    verdicts(cluster.address, repository, recordings[:1])

    assert before > 0
    assert sent() == before


def test_a_scheduler_that_is_not_there(repository: Path, recordings: list[Path]) -> None:
    found = command("check", recordings[0], "--scheduler", "tcp://127.0.0.1:1", cwd=repository)

    assert found.returncode == 128
    assert found.stderr == "replaydbg: The scheduler 'tcp://127.0.0.1:1' did not answer within 10 s.\n"


@pytest.mark.parametrize("address", ["nonsense://x:1", "tcp://", "tcp://host", "x:y:z"])
def test_what_is_no_address(repository: Path, recordings: list[Path], address: str) -> None:
    found = command("check", recordings[0], "--scheduler", address, cwd=repository)

    assert found.returncode == 128
    assert found.stderr == f"replaydbg: --scheduler must be an address such as tcp://host:8786 (got {address!r}).\n"


def waiting_search(cluster: LocalCluster, repository: Path) -> subprocess.Popen[str]:
    """Start a search whose program never ends, and wait until it runs on a worker."""
    (repository.parent / "endless").mkdir(exist_ok=True)
    mark = repository.parent / "endless" / f"{cluster.address.rpartition(':')[2]}"
    program = f"import os, time; open({str(mark)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(1000)"
    words = ["bisect", "commits", "--good", "v1", "--bad", "v8", "--restart", "--scheduler", cluster.address]
    process = subprocess.Popen(
        [sys.executable, "-m", "replaydbg", *words, "--", "-c", program],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | {"XDG_CACHE_HOME": str(repository.parent / "cache-home")},
    )
    wait_until(lambda: process.poll() is not None or len(pids(mark)) == 2, message=cluster.text)
    assert process.poll() is None, process.communicate()
    return process


def pids(mark: Path) -> list[int]:
    return [int(word) for word in mark.read_text().split()] if mark.exists() else []


def mark_of(cluster: LocalCluster, repository: Path) -> Path:
    return repository.parent / "endless" / f"{cluster.address.rpartition(':')[2]}"


def are_gone(found: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in found)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_command_ends_its_tasks(repository: Path, tmp_path: Path, number: signal.Signals) -> None:
    with LocalCluster(tmp_path) as cluster:
        process = waiting_search(cluster, repository)
        running = pids(mark_of(cluster, repository))

        process.send_signal(number)
        _, errors = process.communicate(timeout=60)

        wait_until(lambda: are_gone(running), message=cluster.text)
        assert process.returncode == -number
        if number is signal.SIGINT:
            assert errors.startswith("replaydbg: interrupted; the verdicts are saved")
            assert errors.count("\n") == 1


@pytest.mark.parametrize("is_worker", [False, True])
def test_a_run_ends_with_its_hunt_or_its_worker(tmp_path: Path, is_worker: bool) -> None:
    program, mark = tmp_path / "program", tmp_path / "mark"
    program.mkdir()
    code = f"import os, time; open({str(mark)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(1000)"
    (program / "endless.py").write_text(code)

    with LocalCluster(tmp_path / "cluster", workers=1) as cluster:
        words = ["hunt", "--scheduler", cluster.address, "-o", tmp_path / "caught", "endless.py"]
        command = [sys.executable, "-m", "replaydbg", *map(str, words)]
        process = subprocess.Popen(command, cwd=program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: process.poll() is not None or pids(mark), message=cluster.text)
        running = pids(mark)
        if is_worker:
            assert cluster.kill_worker(0)
        else:
            process.send_signal(signal.SIGINT)

        wait_until(lambda: are_gone(running), message=cluster.text)
        process.kill()
        process.communicate()

    assert running


def test_a_killed_worker_leaves_no_process(repository: Path, tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        process = waiting_search(cluster, repository)
        running = pids(mark_of(cluster, repository))

        assert cluster.kill_worker(0)
        assert cluster.kill_worker(1)

        wait_until(lambda: are_gone(running), message=cluster.text)
        process.kill()
        process.communicate()


def test_a_scheduler_that_goes_away(repository: Path, tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        process = waiting_search(cluster, repository)

        cluster.scheduler.kill()
        _, errors = process.communicate(timeout=100)

    assert process.returncode == 2
    assert errors == f"replaydbg: The scheduler {cluster.address!r} no longer answers; the results so far are kept.\n"


def test_tasks_wait_for_workers_that_come_later(repository: Path, recordings: list[Path], tmp_path: Path) -> None:
    with LocalCluster(tmp_path, workers=0) as cluster:
        words = [sys.executable, "-m", "replaydbg", "check", str(recordings[0]), "--scheduler", cluster.address]
        process = subprocess.Popen(words, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        waits = process.stderr.readline()
        cluster.add_worker(sys.executable, "late")
        output, _ = process.communicate(timeout=100)

    assert waits == "replaydbg: the scheduler has no workers yet; the tasks wait for them.\n"
    assert output.startswith("still fails: ZeroDivisionError")


def test_a_full_cache(repository: Path, recordings: list[Path], tmp_path: Path) -> None:
    with LocalCluster(tmp_path, cache_size="20k") as cluster:
        found = command("check", recordings[0], "--scheduler", cluster.address, cwd=repository)

    assert found.returncode == 125
    assert "is full" in found.stdout
    assert "REPLAYDBG_WORKER_CACHE_SIZE" in found.stdout
    assert found.stdout.startswith("cannot test: tcp://")
    assert found.stdout.count("\n") == 1


OTHER: Any = {"PYTHONPATH": str(ROOT), "PYENV_ROOT": "/nowhere", "PATH": "/usr/bin:/bin"}
"""The variables of a worker with another Python, which finds no interpreter like ours."""


@needs_other_python
def test_a_worker_with_another_python_decides_nothing(repository: Path, recordings: list[Path], tmp_path: Path) -> None:
    with LocalCluster(tmp_path, workers=0) as cluster:
        cluster.add_worker(OTHER_PYTHON, "other", **OTHER)
        found = command("check", recordings[0], "--scheduler", cluster.address, cwd=repository)
        hunted = command("hunt", "-n", "3", "--scheduler", cluster.address, "run.py", "1", cwd=repository)

    assert found.returncode == 125, found.stderr
    assert "cannot test: no worker of the cluster is fit for it; tcp://" in found.stdout
    assert f"and the recording needs Python {sys.version.split()[0]}" in found.stdout
    assert f"and the task needs Python {sys.version.split()[0]}" in hunted.stderr


@needs_other_python
def test_a_fit_worker_does_what_others_cannot(repository: Path, recordings: list[Path], tmp_path: Path) -> None:
    here = verdicts("", repository, recordings[:1])

    with LocalCluster(tmp_path, workers=1) as cluster:
        cluster.add_worker(OTHER_PYTHON, "other", **OTHER)
        cluster.add_worker(OTHER_PYTHON, "without replaydbg", PYTHONPATH="")
        cluster.wait_for(3)
        there = verdicts(cluster.address, repository, recordings[:1])

    assert there == here


@needs_other_python
def test_a_worker_without_replaydbg(repository: Path, recordings: list[Path], tmp_path: Path) -> None:
    with LocalCluster(tmp_path, workers=0) as cluster:
        bare = cluster.add_worker(OTHER_PYTHON, "bare", PYTHONPATH="")
        found = command("check", recordings[0], "--scheduler", cluster.address, cwd=repository)
        is_alive = bare.poll() is None and "Lost all workers" not in cluster.text()

    assert found.returncode == 125, found.stderr
    assert found.stdout.endswith("it has no replaydbg\n")
    assert is_alive
