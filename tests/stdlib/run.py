"""Runs one of CPython's test modules plain, recorded and, if wanted, replayed."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.harness import tool
from tests.harness.figures import Figures, read_figures
from tests.harness.process import Finished, run
from tests.harness.surroundings import key_beside, without_steering
from tests.stdlib.modules import left_out_of, timeout_of
from tests.stdlib.outcomes import Outcome, last_started, read_outcomes

EQUAL = "equal"
BEGINNING_EQUAL = "beginning equal"
_DIVERGED = "Replay diverged"


class Passes(Enum):
    """The runs of each module."""

    PLAIN = "plain alone"
    RECORDED = "plain and recorded"
    REPLAYED = "plain, recorded and replayed"


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of a test module."""

    finished: Finished
    outcomes: dict[str, Outcome]
    # What is wrong with the run as a whole (it died, it was killed), or None.
    trouble: str | None


@dataclass(frozen=True, slots=True)
class ModuleRun:
    """The result of a test module."""

    module: str
    plain: Pass
    recorded: Pass | None
    figures: Figures | None
    # None: not replayed; EQUAL, BEGINNING_EQUAL, or what differs.
    replay: str | None
    # Where recording and outputs are kept, if they were.
    kept: Path | None


def run_module(module: str, *, python: str, passes: Passes, keep: Path | None, ignored: Sequence[str]) -> ModuleRun:
    """Runs `module` on the interpreter `python`, which has replaydbg; a copy of everything goes to `keep`.

    Tests that match a pattern in `ignored` are left out.

    Plain and recorded run in directories of the same name, one after the other: some tests look at their path.
    """
    with tempfile.TemporaryDirectory(prefix="replaydbg-stdlib-") as name:
        base = Path(name)
        command = _test_command(base, module, [*ignored, *left_out_of(module)])
        plain = _pass(base / "work", module, [python, *command])
        recorded, figures, replay = None, None, None
        if passes is not Passes.PLAIN:
            recording = base / f"{module}.rdbg"
            recorded = _pass(base / "work", module, tool.record(python, recording, command))
            if recording.exists():
                figures = read_figures(recording)
                if passes is Passes.REPLAYED:
                    shutil.rmtree(base / "work")
                    replay = _replay(recording, python, recorded.finished, module, figures)
            if keep is not None:
                keep = keep / module
                _keep(keep, recording, plain.finished, recorded.finished)
        return ModuleRun(module, plain, recorded, figures, replay, keep if recorded else None)


def _test_command(base: Path, module: str, ignored: Sequence[str]) -> list[str]:
    work = base / "work"
    out = [part for pattern in ignored for part in ("--ignore", pattern)]
    return ["-m", "test", "-v", "--junit-xml", str(work / "junit.xml"), "--tempdir", str(work / "tmp"), *out, module]


def _pass(work: Path, module: str, argv: list[str]) -> Pass:
    shutil.rmtree(work, ignore_errors=True)
    (work / "tmp").mkdir(parents=True)
    finished = run(argv, cwd=work, env=_environment(work), timeout=timeout_of(module))
    output = finished.stdout.decode(errors="replace") + "\n" + finished.stderr.decode(errors="replace")
    outcomes = read_outcomes(work / "junit.xml", output)
    return Pass(finished, outcomes, _trouble(finished, output, (work / "junit.xml").exists()))


def _trouble(finished: Finished, output: str, has_results: bool) -> str | None:
    if has_results and finished.status >= 0:
        return None
    test = last_started(output)
    last_line = " ".join(finished.stderr.decode(errors="replace").strip().splitlines()[-1:])
    return f"{finished.ending}, last started: {test or 'none'}; {last_line}"


def _environment(work: Path) -> dict[str, str]:
    return without_steering(os.environ) | {"TMPDIR": str(work / "tmp"), "HOME": str(work)} | key_beside(work.parent)


def _replay(recording: Path, python: str, recorded: Finished, module: str, figures: Figures) -> str:
    elsewhere = recording.parent
    env = without_steering(os.environ) | key_beside(recording.parent)
    finished = run(tool.replay(python, recording), cwd=elsewhere, env=env, timeout=timeout_of(module))
    if finished.status == tool.DIVERGED or finished.is_timed_out:
        message = finished.stderr.decode(errors="replace").splitlines()
        said = [line[line.index(_DIVERGED) :] for line in message if _DIVERGED in line]
        return "diverged: " + (said[0] if said else finished.ending)
    if figures.reason:
        # The recording ends before the program did, at something that cannot be recorded: the replay repeats so much.
        return BEGINNING_EQUAL if recorded.stdout.startswith(finished.stdout) else "differs: stdout"
    parts = [
        name
        for name, is_equal in (
            ("exit code", finished.status == recorded.status),
            ("stdout", finished.stdout == recorded.stdout),
            ("stderr", finished.stderr == recorded.stderr),
        )
        if not is_equal
    ]
    return f"differs: {', '.join(parts)}" if parts else EQUAL


def _keep(directory: Path, recording: Path, plain: Finished, recorded: Finished) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    if recording.exists():
        shutil.copy(recording, directory)
    for name, finished in (("plain", plain), ("recorded", recorded)):
        (directory / f"{name}.stdout").write_bytes(finished.stdout)
        (directory / f"{name}.stderr").write_bytes(finished.stderr)
