"""`replaydbg always`: record each run of a virtual environment's interpreter, and keep the last ones."""

from __future__ import annotations

import argparse
import os
import shlex
import site
import sys
from contextlib import suppress
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json
from replaydbg.cli.machine.always_start import FILE, Ring, read_ring, start_line
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.launch.program_python import split_command
from replaydbg.render.measures import show_size
from replaydbg.render.recording_text import listing_text
from replaydbg.store.directory import Store
from replaydbg.store.private import write_private
from replaydbg.store.ring import FAILING, IN_RING, tagged
from replaydbg.store.room import Room

_RUNS = 20
"""How many recordings of runs that passed are kept without an option."""
_MOST = 999_999_999


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    # argparse takes no VENV after an option.
    parser.usage = "replaydbg always (on | off | status) [VENV] [options]"
    parser.add_argument(
        "action", choices=("on", "off", "status"), help="start or stop recording, or show what is recorded and kept"
    )
    parser.add_argument(
        "environment",
        nargs="?",
        metavar="VENV",
        help="the directory of the virtual environment (default: the activated one, else that of replaydbg)",
    )
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help=f"keep the recordings of the last N runs that passed (default: {_RUNS}); all that failed are kept",
    )
    limit.add_argument("--megabytes", type=int, metavar="N", help="keep the last runs that passed, up to N MB together")
    limit.add_argument(
        "--keep-failing-requests",
        action="store_true",
        help="keep only runs that failed, or in which a request failed, as `record` with this option does: for servers",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Turn it on or off, or show what is on; `status` returns 1 if it is off."""
    environment = _environment(args.environment)
    file = _packages(environment) / FILE
    if args.action != "on" and (args.runs is not None or args.megabytes is not None or args.keep_failing_requests):
        raise UsageError(f"--runs, --megabytes and --keep-failing-requests need `always on` (got {args.action!r}).")
    if args.action == "on":
        _turn_on(environment, file, _ring(args))
    elif args.action == "off":
        _turn_off(file)
    ring = _read(file)
    if args.json:
        print_json({"environment": str(environment), "file": str(file), "on": ring is not None, **_facts(ring)})
    else:
        print("\n".join(map(printable, _lines(environment, file, ring))))
    return 1 if args.action == "status" and ring is None else 0


def current_environments() -> list[tuple[Path, Ring]]:
    """Return the environments at hand, the activated one and that of replaydbg, whose runs are recorded."""
    found: dict[Path, Ring] = {}
    for each in (os.environ.get("VIRTUAL_ENV", ""), sys.prefix):
        with suppress(OSError):
            if each and (ring := read_ring(_packages(Path(each)) / FILE)) is not None:
                found[Path(each).resolve()] = ring
    return list(found.items())


def describe(ring: Ring) -> str:
    """Return which recordings are kept, and where, as a phrase."""
    if ring.only_failing:
        kept = "runs that failed, or in which a request failed"
    elif ring.runs:
        count = f"{ring.runs:,} runs" if ring.runs > 1 else "run"
        kept = f"the last {count} that passed, and all that failed"
    else:
        kept = f"the last runs that passed, up to {ring.megabytes:,} MB, and all that failed"
    return f"{kept}, in {ring.store}"


def _environment(given: str | None) -> Path:
    """Return the directory of the environment that is meant. Raises UsageError."""
    activated = os.environ.get("VIRTUAL_ENV", "")
    directory = Path(given if given is not None else activated or sys.prefix).absolute()
    if given == "" or not (directory / "pyvenv.cfg").is_file():
        if given is None and not activated:
            raise UsageError("No virtual environment is activated: name its directory, such as .venv.")
        raise UsageError(f"{str(directory)!r} is not a virtual environment: it has no file pyvenv.cfg.")
    return directory


def _packages(environment: Path) -> Path:
    return Path(site.getsitepackages([str(environment)])[0])


def _ring(args: argparse.Namespace) -> Ring:
    for name, value in (("--runs", args.runs), ("--megabytes", args.megabytes)):
        if value is not None and not 1 <= value <= _MOST:
            raise UsageError(f"{name} must be from 1 to {_MOST:,} (got {value:,}).")
    store = str(the_store().directory.absolute())
    if args.keep_failing_requests:
        return Ring(store, only_failing=True)
    if args.megabytes is not None:
        return Ring(store, megabytes=args.megabytes)
    return Ring(store, runs=_RUNS if args.runs is None else args.runs)


def _turn_on(environment: Path, file: Path, ring: Ring) -> None:
    python = environment / "bin" / "python"
    if not python.exists():
        raise UsageError(f"{str(environment)!r} has no bin/python.")
    split_command([str(python), "-c", ""])  # it raises UsageError for an interpreter that cannot be recorded
    try:
        write_private(file, start_line(ring).encode())
        file.chmod(0o644)  # other users of the environment run its interpreter, too
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be written: {error.strerror}.") from None


def _turn_off(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be removed: {error.strerror}.") from None


def _read(file: Path) -> Ring | None:
    try:
        return read_ring(file)
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be read: {error.strerror}.") from None


def _facts(ring: Ring | None) -> dict[str, object]:
    if ring is None:
        return {}
    passed, failed = _kept(ring)
    return {
        **ring._asdict(),
        "passed": passed[0],
        "passed_size": passed[1],
        "failed": failed[0],
        "failed_size": failed[1],
    }


def _kept(ring: Ring) -> list[tuple[int, int]]:
    """Return the numbers and sizes of the recordings of runs that passed, and of those that failed."""
    store = Store(Path(ring.store))
    found = []
    for tag in (IN_RING, FAILING):
        rows = tagged(store, listing_text, tag)
        room = Room(store)
        found.append((len(rows), sum(map(room.take, rows))))
    return found


def _lines(environment: Path, file: Path, ring: Ring | None) -> list[str]:
    if ring is None:
        return [f"Runs of {environment} are not recorded."]
    passed, failed = _kept(ring)
    return [
        f"Each run of {environment} is recorded. Recordings that are kept: {describe(ring)}.",
        f"Kept now: {passed[0]:,} that passed ({show_size(passed[1])}), and {failed[0]:,} that failed "
        f"({show_size(failed[1])}).",
        f"To turn it off: replaydbg always off {shlex.quote(str(environment))}, or remove {file}.",
    ]
