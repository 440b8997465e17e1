"""Runs a suite plainly and with the plugin, in pairs; compares; replays the recordings of some tests."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from replaydbg.log.reader import open_recording
from tests.harness.process import Finished, run
from tests.harness.surroundings import key_beside, without_steering
from tests.suites.outcomes import Difference, differences, merged_differences, read_outcomes, reason_for
from tests.suites.prepare import Prepared

SEED = 20
"""Which tests are replayed: drawn with this."""

AGAIN = 3
"""So often are tests run again, plainly and recorded, that ended otherwise: some depend on how busy the machine is."""

_MOST_AGAIN = 40
_ENDED = re.compile(r"the recording ends here, after event ([\d,]+): the test ended")
_Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """The options for all suites."""

    timeout: float
    rounds: int
    replays: int
    keep: Path


@dataclass(frozen=True, slots=True)
class Pass:
    """The tests have been run once."""

    outcomes: Mapping[str, str]
    finished: Finished
    # Why there are no outcomes; None if there are.
    trouble: str | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The recording of a test has been replayed."""

    test: str
    # What was not as it was recorded; None: nothing.
    failure: str | None


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a suite."""

    prepared: Prepared
    plain: list[Pass]
    recorded: list[Pass] = field(default_factory=list)
    different: list[Difference] = field(default_factory=list)
    replays: list[Replayed] = field(default_factory=list)

    @property
    def trouble(self) -> str | None:
        """Why the results are not complete; None if they are."""
        return next((each.trouble for each in [*self.plain, *self.recorded] if each.trouble), None)

    @property
    def unexplained(self) -> list[Difference]:
        """Differences for which there is no reason, and that come each time."""
        reasons = self.prepared.suite.differs
        return [each for each in self.different if not each.is_unsteady and reason_for(each.test, reasons) is None]

    @property
    def outdated(self) -> list[str]:
        """The tests that have a reason to be different, and are not."""
        differ = [each.test for each in self.different]
        return [each for each in self.prepared.suite.differs if not any(test.startswith(each) for test in differ)]

    @property
    def is_failed(self) -> bool:
        """Whether there is something to look at."""
        replays = any(each.failure for each in self.replays)
        return bool(self.trouble or self.unexplained or replays or (self.recorded and self.outdated))


def check(prepared: Prepared, options: Options, *, is_plain: bool, say: _Say) -> Result:
    """Run a suite. What failed stays in `options.keep`."""
    work = options.keep.absolute() / prepared.suite.name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    # The files that pytest compiles for itself are there then for both.
    _run_tests(prepared, work / "collected", _plain(), options, more=["--collect-only"])
    result = Result(prepared, [], [])
    for number in range(options.rounds):
        result.plain.append(_run_tests(prepared, work / f"plain-{number}", _plain(), options))
        _say_pass(say, "plain", result.plain[-1])
        if not is_plain:
            result.recorded.append(_run_tests(prepared, work / f"recorded-{number}", _recorded(work, number), options))
            _say_pass(say, "recorded", result.recorded[-1])
    if result.trouble is None and not is_plain:
        result.different.extend(_different(prepared, work, result, options))
        for each in _replay(prepared, work / "recordings-0", result.recorded[0].finished.stdout, options):
            result.replays.append(each)
            if each.failure:
                say(f"  replay of {each.test}: {each.failure}")
    if not result.is_failed:
        shutil.rmtree(work, ignore_errors=True)
    return result


def _say_pass(say: _Say, kind: str, each: Pass) -> None:
    say(f"  {kind}: {len(each.outcomes)} tests, {each.finished.cpu:.1f} s CPU, {each.finished.wall:.1f} s")


def _plain() -> list[str]:
    return ["-p", "no:replaydbg"]


def _recorded(work: Path, number: int) -> list[str]:
    return ["--replaydbg=on", f"--replaydbg-dir={work / f'recordings-{number}'}"]


def _run_tests(
    prepared: Prepared, files: Path, mode: Sequence[str], options: Options, *, more: Sequence[str] = ()
) -> Pass:
    """Run pytest, its output and the outcomes go to files that begin with `files`; `more` may name tests."""
    suite = prepared.suite
    outcomes = files.with_suffix(".json")
    command = [str(prepared.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "suites_outcomes"]
    command += [f"--outcomes={outcomes}", *mode]
    command += [f"-n{suite.workers}"] if suite.workers else ["-p", "no:xdist"]
    command += [f"--deselect={each}" for each in suite.left_out]
    command += more if any("::" in each for each in more) else [*suite.arguments, *more]
    env = _environment(files.parent)
    finished = run(command, cwd=prepared.sources, env=env, timeout=options.timeout)
    files.with_suffix(".txt").write_bytes(finished.stdout + b"\n--- stderr ---\n" + finished.stderr)
    found = read_outcomes(outcomes)
    return Pass(found, finished, None if found and not finished.is_timed_out else _trouble(finished))


def _trouble(finished: Finished) -> str:
    lines = (finished.stdout + finished.stderr).decode(errors="replace").strip().splitlines()
    return f"{finished.ending}: {lines[-1] if lines else 'no output'}"


def _environment(home: Path) -> dict[str, str]:
    """Ours, without what steers Python, pytest or their plugins; and what makes two runs equal."""
    kept = {
        name: value
        for name, value in without_steering(os.environ).items()
        if not name.startswith(("PYTEST_", "COV_", "XDG_", "CI", "GITHUB_", "VIRTUAL_ENV", "NO_COLOR", "FORCE_COLOR"))
    }
    orders = {name: value for name, value in os.environ.items() if name.startswith("REPLAYDBG_TEST_")}
    return kept | orders | key_beside(home) | {"HOME": str(home), "PYTHONHASHSEED": "1", "COLUMNS": "100"}


def _different(prepared: Prepared, work: Path, result: Result, options: Options) -> Iterator[Difference]:
    """Yield the tests that ended otherwise, with the outcomes that they had when they were run again."""
    plain, recorded = [each.outcomes for each in result.plain], [each.outcomes for each in result.recorded]
    found = {each.test for one, other in zip(plain, recorded, strict=True) for each in differences(one, other)}
    if not found:
        return
    if len(found) <= _MOST_AGAIN:
        for number in range(AGAIN):
            again = sorted(found)
            plain.append(_run_tests(prepared, work / f"again-plain-{number}", _plain(), options, more=again).outcomes)
            mode = _recorded(work, options.rounds + number)
            recorded.append(_run_tests(prepared, work / f"again-{number}", mode, options, more=again).outcomes)
    yield from merged_differences(plain, recorded, found)


def _replay(prepared: Prepared, directory: Path, printed: bytes, options: Options) -> Iterator[Replayed]:
    """Replay the recordings of some tests, drawn of all that were kept."""
    kept = kept_tests(directory)
    drawn = random.Random(SEED).sample(sorted(kept), min(options.replays, len(kept)))
    elsewhere = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    env = elsewhere | key_beside(directory.parent)
    # Nothing is timed here: each core has one.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        printed_there = None if prepared.suite.workers else printed
        replay_one = partial(_replay_one, prepared, kept, printed_there, options, env)
        yield from pool.map(replay_one, drawn)


def _replay_one(
    prepared: Prepared,
    kept: Mapping[str, Path],
    printed: bytes | None,
    options: Options,
    env: Mapping[str, str],
    test: str,
) -> Replayed:
    folder = kept[test]
    with open_recording(folder / "rec.rdbg") as recording:
        events = recording.end.events if recording.end is not None else 0
    command = [str(prepared.python), "-m", "replaydbg", "replay", str(folder / "rec.rdbg")]
    finished = run(command, cwd=folder.parent, env=env, timeout=options.timeout)
    failure = replay_failure(finished, events, printed)
    if failure:
        (folder / "replay.txt").write_bytes(finished.stdout + b"\n--- stderr ---\n" + finished.stderr)
    return Replayed(test, failure)


def kept_tests(directory: Path) -> dict[str, Path]:
    """The directory of each test that was kept, by node id."""
    try:
        index = json.loads((directory / "index.json").read_text())
    except (OSError, ValueError):
        return {}  # they are missing then, and that is told
    return {str(each["nodeid"]): directory / each["directory"] for each in (*index["results"], *index["passed"])}


def replay_failure(finished: Finished, events: int, printed: bytes | None) -> str | None:
    """Describe how it differed from the recording.

    The end of the test must be reached, what is printed be the session's beginning.

    `printed` is what the recorded session printed; None: a worker, which prints nothing.
    """
    lines = finished.stderr.decode(errors="replace").strip().splitlines()
    ended = _ENDED.search(lines[-1]) if lines else None
    if ended is None:
        return f"{finished.ending}: {' '.join(lines[:3]) or 'it says nothing'}"
    if int(ended[1].replace(",", "")) != events:
        return f"it ended after event {ended[1]} of {events:,}"
    if printed is not None and not printed.startswith(finished.stdout):
        return "it prints something else"
    return None
