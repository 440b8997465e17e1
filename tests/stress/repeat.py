"""Records a program once and replays it many times: how many are equal?"""

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.harness import tool
from tests.harness.figures import Figures, read_figures
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.real.peer import Peer, PeerFailed, running_beside, with_port


@dataclass(frozen=True, slots=True)
class Stressed:
    """A program with many threads."""

    name: str
    program: Path
    # One line for people.
    does: str
    # What stdout of every run contains.
    expect: str
    arguments: tuple[str, ...] = ()
    peer: Peer | None = None


@dataclass(frozen=True, slots=True)
class Repeated:
    """The result of one recording and its replays."""

    stressed: Stressed
    # None: with the slices that every recording has.
    chaos: int | None
    replays: int
    equal: int
    figures: Figures | None
    # Why the recording, or the first replay that was not equal, is not as it must be; None: all are.
    failure: str | None
    kept: Path | None


class _Failed(Exception):
    """The message is the finding."""


def repeat(stressed: Stressed, chaos: int | None, *, replays: int, timeout: float, keep: Path) -> Repeated:
    """One recording, and `replays` of it without the peer and without the working directory."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-stress-") as name:
        base = Path(name)
        recording = base / f"{stressed.name}.rdbg"
        figures, failure, equal, outputs = None, None, 0, []
        try:
            recorded = _record(stressed, chaos, base, recording, timeout)
            outputs.append(("recorded", recorded))
            figures = _require_whole(stressed, recorded, recording)
            for number in range(replays):
                replayed = run(tool.replay(sys.executable, recording), cwd=base, env=_environment(), timeout=timeout)
                difference = _difference(recorded, replayed)
                equal += difference is None
                if difference is not None and failure is None:
                    failure = f"replay {number + 1}: {difference}"
                    outputs.append((f"replay-{number + 1}", replayed))
        except (_Failed, PeerFailed) as found:
            failure = str(found)
        kept = None
        if failure is not None:
            kept = keep / (stressed.name if chaos is None else f"{stressed.name}-{chaos}")
            _keep(kept, recording, outputs)
        return Repeated(stressed, chaos, replays, equal, figures, failure, kept)


def chaos_options(seed: int | None) -> tuple[str, ...]:
    """The options of the command line for it."""
    return () if seed is None else ("--chaos", str(seed))


def _record(stressed: Stressed, chaos: int | None, base: Path, recording: Path, timeout: float) -> Finished:
    work = base / "work"
    work.mkdir()
    shutil.copy(stressed.program, work)
    try:
        with running_beside(stressed.peer, _environment()) as port:
            argv = [stressed.program.name, *with_port(stressed.arguments, port)]
            command = tool.record(sys.executable, recording, argv, chaos_options(chaos))
            return run(command, cwd=work, env=_environment(), timeout=timeout)
    finally:
        shutil.rmtree(work)


def _environment() -> dict[str, str]:
    return without_steering(os.environ)


def _require_whole(stressed: Stressed, recorded: Finished, recording: Path) -> Figures:
    if recorded.status != 0:
        raise _Failed(f"{recorded.ending} while recording: {last_line(recorded)}")
    if stressed.expect.encode() not in recorded.stdout:
        raise _Failed(f"it does not print {stressed.expect!r}")
    figures = read_figures(recording)
    if figures.reason is not None:
        raise _Failed(f"the recording ends early: {figures.reason}")
    return figures


def _difference(recorded: Finished, replayed: Finished) -> str | None:
    if replayed.status != recorded.status:
        return f"{replayed.ending}, recorded: {recorded.ending}: {last_line(replayed)}"
    if (replayed.stdout, replayed.stderr) != (recorded.stdout, recorded.stderr):
        return "it prints something else"
    return None


def last_line(finished: Finished) -> str:
    """The line about its end: of a divergence the first one, else the last one."""
    lines = finished.stderr.decode(errors="replace").strip().splitlines()
    about = [line for line in lines if line.startswith("Replay diverged")]
    return (about or lines[-1:] or [""])[0]


def _keep(directory: Path, recording: Path, outputs: list[tuple[str, Finished]]) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    if recording.exists():
        shutil.copy(recording, directory)
    for name, finished in outputs:
        (directory / f"{name}.stdout").write_bytes(finished.stdout)
        (directory / f"{name}.stderr").write_bytes(finished.stderr)
