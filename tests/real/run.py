"""Records a scenario once, spoils what it took from outside, replays it five times and compares."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.harness import tool
from tests.harness.figures import Figures, read_figures
from tests.harness.process import Finished, run
from tests.harness.surroundings import key_beside
from tests.real.peer import PeerFailed, running_beside, with_port
from tests.real.scenario import Scenario

REPLAYS = 5


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a scenario."""

    scenario: Scenario
    # None if all went well; else what was different, and where.
    failure: str | None
    figures: Figures | None = None
    # Seconds of the recording command, and the median of the replays; None if it did not come to that.
    record_seconds: float | None = None
    replay_seconds: float | None = None
    replays_equal: int = 0
    # Where recording and outputs of a failure are kept.
    kept: Path | None = None
    # The recorded run did what the row says; what failed, failed afterwards.
    has_run: bool = True


class _Failed(Exception):
    """The scenario did not do what it must; its message is the finding."""


def check_plainly(scenario: Scenario, *, timeout: float) -> Result:
    """Runs the scenario without the tool: does it do what its row says?"""
    with tempfile.TemporaryDirectory(prefix="replaydbg-real-") as name:
        work = _laid_out(scenario, Path(name))
        finished, failure = _run_beside(scenario, [sys.executable], work, _environment(scenario, work), timeout=timeout)
        try:
            _require_expected(scenario, finished)
        except _Failed as found:
            failure = "; ".join(filter(None, (str(found), failure))) + "\n" + _text(finished)
        return Result(scenario, failure, record_seconds=finished.wall)


def check_replays(scenario: Scenario, *, timeout: float, keep: Path) -> Result:
    """Records, spoils, replays; a failure's recording and outputs go to `keep`. `timeout` is for each command."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-real-") as name:
        base = Path(name)
        work = _laid_out(scenario, base)
        recording = base / f"{scenario.name}.rdbg"
        command = tool.record(sys.executable, recording, ())
        recorded, unhappy = _run_beside(scenario, command, work, _environment(scenario, work), timeout=timeout)
        outputs = [("recorded", recorded)]
        figures, failure, has_run = None, None, False
        try:
            # A program fails because its peer does, or the other way round.
            if unhappy is not None:
                raise _Failed(f"{unhappy}; the program: {recorded.ending}: {_last_line(recorded)}")
            _require_expected(scenario, recorded)
            has_run = True
            figures = _require_whole(recording)
            for number in _spoiling(work):
                replayed = _replay(recording, base, timeout)
                outputs.append((f"replay-{number}", replayed))
                _require_equal(recorded, replayed, number, scenario.child_lines)
                _require_untouched(base, number)
        except _Failed as found:
            failure = str(found)
            _keep(keep / scenario.name, recording, outputs)
        replays = [finished for which, finished in outputs if which != "recorded"]
        return Result(
            scenario,
            failure,
            figures,
            recorded.wall,
            median(finished.wall for finished in replays) if replays else None,
            len(replays) - (1 if failure and replays else 0),
            keep / scenario.name if failure else None,
            has_run,
        )


def _run_beside(
    scenario: Scenario, command: list[str], work: Path, env: dict[str, str], *, timeout: float
) -> tuple[Finished, str | None]:
    """The program run by `command`, its peer beside it; and what the peer has to complain of, which is gone then."""
    finished = None
    try:
        with running_beside(scenario.peer, env) as port:
            finished = run([*command, *with_port(scenario.argv, port)], cwd=work, env=env, timeout=timeout)
        return finished, None
    except PeerFailed as failure:
        return finished or Finished((), 0, b"", b"", 0.0, 0.0, False), str(failure)


def _laid_out(scenario: Scenario, base: Path) -> Path:
    work = base / "work"
    work.mkdir()
    scenario.lay_out(work)
    return work


def _environment(scenario: Scenario, work: Path) -> dict[str, str]:
    """Ours, with a home of its own, and without what would steer the programs or the tool."""
    steering = ("REPLAYDBG_", "PYTEST_", "COV", "XDG_", "PIP_", "PYTHON", "VIRTUAL_ENV")
    kept = _orders() | {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    home = work / "home"
    home.mkdir(exist_ok=True)
    # pip would look for a newer one of itself, and tests would load whatever plugins are installed.
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "100"}
    return kept | quiet | key_beside(work.parent) | {"HOME": str(home)} | dict(scenario.env)


def _orders() -> dict[str, str]:
    """The orders of our own environment to the core for tests, see CONTRIBUTING."""
    return {name: value for name, value in os.environ.items() if name.startswith("REPLAYDBG_TEST_")}


def _spoiling(work: Path) -> Iterator[int]:
    """Yields the number of each replay: two with every file changed, the rest with the whole directory gone."""
    for number in range(1, REPLAYS + 1):
        if number == 1:
            for path in work.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    path.write_bytes(b"spoilt: not what was recorded\n")
        elif number == 3:
            shutil.rmtree(work)
        yield number


def _replay(recording: Path, base: Path, timeout: float) -> Finished:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    elsewhere = {"HOME": "/nonexistent", "TZ": "Asia/Tokyo", "LC_ALL": "C", "COLUMNS": "33", "TODO_OWNER": "nobody"}
    return run(
        tool.replay(sys.executable, recording),
        cwd=base,
        env=_orders() | kept | elsewhere | key_beside(base),
        timeout=timeout,
    )


def _require_expected(scenario: Scenario, finished: Finished) -> None:
    if finished.status != scenario.exit_code:
        raise _Failed(f"{finished.ending} instead of {scenario.exit_code}: {_last_line(finished)}")
    if scenario.expect not in _text(finished):
        raise _Failed(f"it does not print {scenario.expect!r}: {_last_line(finished)}")


def _require_whole(recording: Path) -> Figures:
    if not recording.exists():
        raise _Failed("there is no recording")
    figures = read_figures(recording)
    if figures.reason is not None:
        notes = "; ".join(f"{kind}: {text}" for kind, text in figures.notes)
        raise _Failed(f"the recording ends early: {figures.reason} ({notes})")
    return figures


def _require_equal(recorded: Finished, replayed: Finished, number: int, child_lines: str | None) -> None:
    if replayed.status != recorded.status:
        raise _Failed(f"replay {number}: {replayed.ending}, recorded: {recorded.ending}: {_last_line(replayed)}")
    for which, was, now in (
        ("stdout", recorded.stdout, replayed.stdout),
        ("stderr", recorded.stderr, replayed.stderr),
    ):
        was = _without_child_lines(was, child_lines)
        if was != now:
            raise _Failed(f"replay {number}: {which}: {_first_difference(was, now)}")


def _without_child_lines(output: bytes, beginning: str | None) -> bytes:
    if beginning is None:
        return output
    lines = output.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(beginning.encode()))


def _first_difference(was: bytes, now: bytes) -> str:
    ours, theirs = was.splitlines(), now.splitlines()
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if one != other:
            return f"line {number}: recorded {one[:200]!r}, replayed {other[:200]!r}"
    return f"{len(ours)} lines recorded, {len(theirs)} replayed"


def _require_untouched(base: Path, number: int) -> None:
    """A replay makes nothing: after the spoiling there is only spoilt text, later not even the directory."""
    work = base / "work"
    left = [path for path in work.rglob("*") if path.is_file() and not path.is_symlink()]
    changed = [path.name for path in left if not path.read_bytes().startswith(b"spoilt")]
    if changed or (number >= 3 and work.exists()):
        raise _Failed(f"replay {number} wrote into the working directory: {', '.join(changed) or 'made it again'}")


def _keep(directory: Path, recording: Path, outputs: list[tuple[str, Finished]]) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    if recording.exists():
        shutil.copy(recording, directory)
    for name, finished in outputs:
        (directory / f"{name}.stdout").write_bytes(finished.stdout)
        (directory / f"{name}.stderr").write_bytes(finished.stderr)


def _text(finished: Finished) -> str:
    return (finished.stdout + b"\n" + finished.stderr).decode(errors="replace")


def _last_line(finished: Finished) -> str:
    lines = finished.stderr.decode(errors="replace").strip().splitlines()
    # Of a divergence the first line says what it is about.
    about = [line for line in lines if line.startswith("Replay diverged")]
    return (about or lines[-1:] or [""])[0]
