"""`python -m tests.resumes`: programs are killed at random moments and resumed; nothing is lost or doubled."""

import argparse
import platform
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.harness.surroundings import restore_signals
from tests.harness.table import as_text
from tests.resumes import power_loss
from tests.resumes.disks import disk_round, missing_mount
from tests.resumes.group_rounds import ROUNDS as GROUPS
from tests.resumes.group_rounds import group_round
from tests.resumes.rounds import PROGRAMS, Round, WrongRound, missing, one_round, standby_round
from tests.resumes.servers import postgres

_HEADING = ("program", "rounds", "right", "killed", "events when killed")


def main(argv: Sequence[str] | None = None) -> int:
    """0: each ledger is right, and each continued recording replays; 1: one is not."""
    options = _parser().parse_args(argv)
    restore_signals()
    seed = options.seed if options.seed is not None else random.randrange(1 << 24)
    print(f"seed {seed}", flush=True)
    if options.disks and (reason := _missing_mount()):
        print(f"--disks: {reason}", file=sys.stderr, flush=True)
        return 2
    programs = [each for each in _wanted(options) if not _is_skipped(each)]
    if not programs:
        return 0
    count = options.groups or options.rounds
    orders = [(seed + number, programs[number % len(programs)]) for number in range(count)]
    with ExitStack() as stack:
        port = stack.enter_context(postgres()) if "postgres" in programs else 0
        pool = stack.enter_context(ThreadPoolExecutor(options.jobs))
        results = list(pool.map(lambda order: _played(order[0], order[1], options, port), orders))
        print(f"Python {platform.python_version()}")
        played = list(zip((program for _, program in orders), results, strict=True))
        print(as_text(_HEADING, [_row(program, played) for program in (*programs, "all")]), flush=True)
    return int(None in results)


def _missing_mount() -> str:
    with tempfile.TemporaryDirectory(prefix="replaydbg-resume-") as scratch:
        return missing_mount(Path(scratch))


def _wanted(options: argparse.Namespace) -> list[str]:
    if options.power_loss:
        return [power_loss.PROGRAM]
    if options.groups:
        return [each for each in options.programs if each in GROUPS] or list(GROUPS)
    return options.programs or list(PROGRAMS)


def _is_skipped(program: str) -> bool:
    """Whether a program cannot run here; print why."""
    if reason := missing(program):
        print(f"{program}: skipped, {reason}", file=sys.stderr, flush=True)
    return bool(reason)


def _played(seed: int, program: str, options: argparse.Namespace, port: int) -> Round | None:
    base = Path(tempfile.mkdtemp(prefix=f"replaydbg-resume-{seed}-")).resolve()
    try:
        if program in GROUPS:
            return group_round(seed, program, base, kills=options.kills)
        if options.power_loss:
            return power_loss.power_loss_round(seed, base, images=options.kills)[0]
        if options.disks:
            return disk_round(seed, program, base, cuts=options.kills, port=port)
        if options.standby:
            return standby_round(seed, program, base, port=port)
        return one_round(seed, program, base, kills=options.kills, port=port)
    except WrongRound as wrong:
        kept = options.keep / str(seed)
        shutil.rmtree(kept, ignore_errors=True)
        with suppress(shutil.Error):  # a process that seals is still at work
            shutil.copytree(base, kept, ignore=shutil.ignore_patterns("wake"))  # a fifo
        print(f"seed {seed}, {program}: {wrong}; kept in {kept}\n", file=sys.stderr, flush=True)
        return None
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _row(program: str, played: Sequence[tuple[str, Round | None]]) -> list[str]:
    """Return the sums of the rounds of a program. A wrong round counts nowhere but in the number of rounds."""
    rounds = [each for name, each in played if program in (name, "all")]
    right = [each for each in rounds if each is not None]
    killed = [each for each in right if each.kills]
    events = sum(each.events for each in killed) // max(len(killed), 1)
    return [program, str(len(rounds)), str(len(right)), str(sum(each.kills for each in right)), f"{events:,}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.resumes", description=__doc__)
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, *GROUPS, []], help="default: all")
    parser.add_argument("--rounds", metavar="N", type=int, default=300, help="default: %(default)s")
    parser.add_argument(
        "--kills", metavar="N", type=int, default=2, help="in each round, at most (default: %(default)s)"
    )
    parser.add_argument(
        "--groups",
        metavar="N",
        type=int,
        default=0,
        help="N rounds of groups of processes, which are killed as a whole",
    )
    parser.add_argument("--standby", action="store_true", help="a standby takes over, which is begun before the kill")
    parser.add_argument(
        "--power-loss",
        action="store_true",
        help="a program that synchronises its ledger is recorded with --durable; it is resumed from what the disk may "
        "have after power was lost at --kills moments",
    )
    parser.add_argument(
        "--disks",
        action="store_true",
        help="the programs are recorded with --durable on a disk of their own, and resumed from copies that were made "
        "of it at --kills moments, as a power cut would leave it; needs the rights to mount a file",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="of the first round (default: random)")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="rounds at once (default: %(default)s)")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=Path("test-results/resumes"), help="for failures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
