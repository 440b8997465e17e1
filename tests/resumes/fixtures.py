"""`python -m tests.resumes.fixtures`: kill each fixture after a random event, resume it, and replay its recording."""

import argparse
import platform
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.reader import open_recording
from tests.children.__main__ import NOT_PLAIN
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES, Case, cases_of
from tests.harness.replay_places import Form
from tests.harness.replays import Outcome, Scene, run
from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text

_KILLED = 128 + 9
_OWN_NUMBER = "it sends a signal to the process id that it had before it was killed"
_NO_CALL = "it waits for a timer's signal and makes no call; timers are set at the next call that leaves the process"
_HAS_OTHER_END = "it waits for what lost children would send, and has the other end of that connection open itself"
_LOST_SENDER = (
    "it computes until a child sends it a signal, and that child is lost: it would wait for ever plainly, too"
)
KNOWN = {
    "interrupted_join": _OWN_NUMBER,
    "handler_in_a_traced_program": _NO_CALL,
    "keyboard_interrupt_in_a_long_list": _LOST_SENDER,
    "loop_counts_in_an_iterator": _NO_CALL,
    "loop_counts_in_buffers": _NO_CALL,
    "moved_by_the_kernel": "what the first live call moves to a standard stream is missing in the replayed output",
    "opened_again": "it writes to a file by two positions, which overwrite each other; a replay shows all bytes",
    "loops_that_only_wait": _NO_CALL,
    "processes_and_pipes": _HAS_OTHER_END,
    "sent_by_c_code": "C code sends a signal to the process after the last event; that ends the replay",
    "sent_in_other_ways": "a signal that it had sent to itself was not handled yet when it was killed",
    "tcp_echo": "one of its threads waits for the other end of a connection to itself, which both lost",
}
"""Fixtures that do not end, or end differently, if they are killed at certain events; and why."""
_USAGE = 2


@dataclass(frozen=True, slots=True)
class Tried:
    """One case, killed once."""

    area: str
    name: str
    event: int
    """After which it was killed."""
    result: str
    """`equal`: the recording replays and the output is that of the uncut run; `own`: it replays, and the output
    differs, as it does between two runs; `refused`: named before anything was live; `known`: wrong, by KNOWN; `wrong`.
    """
    detail: str


def main(argv: Sequence[str] | None = None) -> int:
    """0: none is wrong; 1: one is."""
    options = _parser().parse_args(argv)
    restore_signals()
    seed = options.seed if options.seed is not None else random.randrange(1 << 24)
    print(f"seed {seed}", flush=True)
    orders = [
        case
        for area in sorted(path.name for path in FIXTURES.iterdir() if path.is_dir() and path.name not in NOT_PLAIN)
        for program in sorted((FIXTURES / area).iterdir())
        if program.suffix == ".py" and not program.name.startswith("_")
        for case in cases_of(program)
        if case.fails is None and case.how.form is Form.SCRIPT and not case.how.is_cut_short
        if not options.only or {program.stem, program.parent.name} & set(options.only)
    ][:: options.every]
    with ThreadPoolExecutor(options.jobs) as pool:
        tried = list(pool.map(lambda case: _try(case, seed), orders))
    _show(tried)
    return int(any(each.result == "wrong" for each in tried))


def _try(case: Case, seed: int) -> Tried:
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=case.how)
    area, name = case.program.parent.name, case.program.stem
    event = 0
    try:
        whole = scene.record()
        count = _events(scene.recording)
        event = random.Random(f"{seed} {area} {name} {case.args}").randrange(1, max(count, 2))
        result, detail = _killed_and_resumed(scene, event, whole)
    except (AssertionError, OSError, ReplaydbgError, subprocess.TimeoutExpired) as error:
        result, detail = "wrong", str(error)[:2000] or type(error).__name__
    if result == "wrong" and name in KNOWN:
        result = "known"
    if result == "wrong":
        print(f"{area}/{name}, killed after event {event}: {detail}\nkept: {scene.base}\n", file=sys.stderr, flush=True)
    else:
        scene.remove()
    return Tried(area, name, event, result, detail)


def _killed_and_resumed(scene: Scene, event: int, whole: Outcome) -> tuple[str, str]:
    cut = _Killed(**{name: getattr(scene, name) for name in scene.__dataclass_fields__}, killed_at=event)
    scene.recording.unlink()
    before = cut.record()
    if before.status != _KILLED:
        return "own", f"it ended with {before.status} before event {event}"
    command = [scene.python, "-m", "replaydbg", "resume", "-q", "--in-flight=repeat"]
    resumed_file = scene.base / "resumed.rdbg"
    after = run(
        [*command, "-o", str(resumed_file), str(scene.recording)],
        cwd=scene.work,
        env=scene._env(),
        stdin=None if scene.stdin is None else scene.stdin.encode(),
        stdin_is=scene.how.stdin_is,
        timeout=scene.timeout,
    )
    if not resumed_file.exists():
        is_refused = after.status == _USAGE and "Traceback" not in after.stderr
        return ("refused" if is_refused else "wrong"), f"resume: exit code {after.status}: {after.stderr[-1500:]}"
    replayed = run(
        tool.replay(scene.python, resumed_file), cwd=scene.base, env=scene._changed_env(), timeout=scene.timeout
    )
    together = Outcome(before.stdout + after.stdout, before.stderr + after.stderr, after.status, 0.0)
    resumed, played = after.stderr[-1000:], replayed.stderr[-1500:]
    detail = f"resume: exit code {after.status}: {resumed}\nreplay: {replayed.status}: {played}"
    if replayed.status != after.status or scene.comparable(replayed.stdout) != scene.comparable(together.stdout):
        return "wrong", detail
    is_same = (together.stdout, together.status) == (whole.stdout, whole.status)
    return ("equal" if is_same else "own"), "" if is_same else detail


@dataclass(frozen=True, slots=True)
class _Killed(Scene):
    killed_at: int = 0

    def _orders(self, run: str, factor: int) -> dict[str, str]:
        return Scene._orders(self, run, factor) | {"REPLAYDBG_TEST_KILLED_AT": str(self.killed_at)}


def _events(path: Path) -> int:
    with open_recording(path) as recording:
        return recording.log_header.crossings if recording.log_header is not None else 0


def _show(tried: Sequence[Tried]) -> None:
    print(f"Python {platform.python_version()}")
    results = ("equal", "own", "refused", "known", "wrong")
    counts = Counter((each.area, each.result) for each in tried)
    rows = [
        [area, *(str(counts[area, result]) for result in results)] for area in sorted({each.area for each in tried})
    ]
    rows.append(["all", *(str(sum(each.result == result for each in tried)) for result in results)])
    print(as_text(["area", *results], rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.resumes.fixtures", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="a folder of fixtures, or one; can be repeated")
    parser.add_argument("--every", metavar="N", type=int, default=1, help="only each N-th case (default: 1)")
    parser.add_argument("--seed", metavar="N", type=int, help="of the events (default: random)")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="cases at once (default: 2)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
