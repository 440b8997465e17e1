"""`python -m tests.cluster`: recordings over commits of a real package, on a cluster whose workers are killed.

The verdicts must be those of the local pool. The speed is compared with the local pool of as many processes, and, with
`--simulate`, that of a real scheduler with tasks that only wait with what its slots allow.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from replaydbg.cluster.open_pool import open_pool
from replaydbg.cluster.questions.commit_tasks import AtCommit, CommitTasks
from replaydbg.cluster.tasks import RecordingTask, results
from tests.cluster.local_cluster import LocalCluster
from tests.cluster.simulated import Simulated
from tests.culprits.cases import CASES
from tests.culprits.history import make_repository
from tests.harness.history import git

_PROGRAM = Path(__file__).parent / "programs" / "versions.py.in"
Verdicts = dict[tuple[str, str], str]


def main(argv: Sequence[str] | None = None) -> int:
    """0: the same verdicts on the cluster as here; 1: not."""
    options = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="cluster-", ignore_cleanup_errors=True) as scratch:
        directory = Path(scratch)
        if options.simulate:
            return _simulate(options, directory)
        os.environ["XDG_CACHE_HOME"] = str(directory / "cache-home")
        return _measure(options, directory)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--recordings", type=int, default=200, metavar="N", help="number of recordings (default: 200)")
    parser.add_argument("--commits", type=int, default=20, metavar="N", help="number of commits, at most 25")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    parser.add_argument("--kill", type=float, default=10.0, metavar="SECONDS", help="how often a worker is killed")
    parser.add_argument("--only-kills", action="store_true", help="no run on the cluster without kills")
    parser.add_argument("--simulate", type=int, default=0, metavar="SLOTS", help="tasks that only wait, on these slots")
    parser.add_argument("--seconds", type=float, default=1.0, help="with --simulate: mean duration of a task")
    parser.add_argument(
        "--cache",
        metavar="DIR",
        type=Path,
        default=Path(tempfile.gettempdir(), "replaydbg-releases"),
        help="where downloaded releases are kept",
    )
    return parser


def _measure(options: argparse.Namespace, directory: Path) -> int:
    (case,) = (each for each in CASES if each.package == "packaging")
    repository = make_repository(directory / "packaging", "packaging", case.releases[-options.commits :], options.cache)
    (repository / "versions.py").write_text(_PROGRAM.read_text())
    recordings = _recorded(repository, directory / "runs", options.recordings)
    names = git(repository, "rev-list", "--reverse", "main").split()
    make = CommitTasks(repository, names)
    tasks = [make.task(path, name) for path in recordings for name in names]
    print(f"{len(recordings)} recordings, {len(names)} commits, {len(tasks)} tasks", flush=True)
    here, alone = _run("", options.workers, tasks, f"local pool, {options.workers} at once")
    with LocalCluster(directory / "cluster", workers=options.workers) as cluster:
        there, together = here, 0.0
        if not options.only_kills:
            there, together = _run(cluster.address, 0, tasks, f"cluster of {options.workers} workers")
        with cluster.killing(options.kill) as kills:
            killed, survived = _run(cluster.address, 0, tasks, f"the same, a worker killed every {options.kill:g} s")
    print(f"{len(kills)} workers killed; verdicts: {dict(Counter(each.partition(':')[0] for each in here.values()))}")
    if together:
        print(f"speed without kills: {alone / together:.0%} of the local pool")
    print(f"speed with kills: {alone / survived:.0%} of the local pool")
    differing = [key for key in here if not here[key] == there.get(key) == killed.get(key)]
    for key in differing[:10]:
        print(f"differs: {key}: {here[key]} | {there.get(key)} | {killed.get(key)}")
    print(f"{len(differing)} verdicts differ")
    return int(bool(differing))


def _recorded(repository: Path, directory: Path, count: int) -> list[Path]:
    directory.mkdir()
    made = [directory / f"run-{number}.rdbg" for number in range(1, count + 1)]

    def record(number: int) -> None:
        words = ["record", "-q", "-o", str(made[number]), "versions.py", str(number + 1)]
        subprocess.run([sys.executable, "-m", "replaydbg", *words], cwd=repository, capture_output=True, check=False)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(record, range(count)))
    return made


def _run(address: str, jobs: int, tasks: Sequence[RecordingTask], what: str) -> tuple[Verdicts, float]:
    found: Verdicts = {}
    busy = 0.0
    with open_pool(address, jobs=jobs) as pool:
        slots = pool.slots
        began = time.monotonic()
        for each in results(pool, tasks):
            assert each.task.recording is not None
            assert isinstance(each.task.question, AtCommit)
            key = each.task.recording.name, each.task.question.commit[:10]
            found[key] = f"{each.verdict.value}: {each.reason}"
            busy += each.seconds
        seconds = time.monotonic() - began
    # Of what the slots could do; the rest is the transport, the order of the tasks, and what killed workers had done.
    share = busy / (seconds * slots)
    print(f"{what}: {seconds:.1f} s, {seconds / len(tasks):.2f} s a task, slots busy {share:.0%}", flush=True)
    return found, seconds


def _simulate(options: argparse.Namespace, directory: Path) -> int:
    code = "print(sum(range(100)))"
    recordings = []
    for number in range(min(options.recordings, 20)):
        path = directory / f"run-{number}.rdbg"
        words = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", str(path), "-c", f"{code}  # {number}"]
        subprocess.run(words, check=True, capture_output=True)
        recordings.append(path)
    # Links: each counts as a recording of its own, and they need not all be made.
    for number in range(len(recordings), options.recordings):
        recordings.append(directory / f"run-{number}.rdbg")
        recordings[-1].hardlink_to(recordings[number % 20])
    draw = random.Random(1)
    tasks = [
        RecordingTask(path, Simulated(draw.uniform(0.5, 1.5) * options.seconds))
        for path in recordings
        for _ in range(options.commits)
    ]
    ideal = sum(each.question.seconds for each in tasks if isinstance(each.question, Simulated)) / options.simulate
    threads, module = -(-options.simulate // options.workers), Simulated.__module__
    with LocalCluster(directory / "cluster", workers=options.workers, threads=threads, preload=module) as cluster:
        with open_pool(cluster.address) as pool:
            while pool.slots < threads * options.workers:
                time.sleep(0.1)
            began = time.monotonic()
            done = Counter(each.verdict.value for each in results(pool, tasks))
            seconds = time.monotonic() - began
    print(f"{len(tasks)} tasks on {threads * options.workers} slots of {options.workers} processes: {dict(done)}")
    print(f"{seconds:.1f} s; ideal {ideal:.1f} s: {ideal / seconds:.0%}")
    return int(done["good"] != len(tasks))


if __name__ == "__main__":
    sys.exit(main())
