"""`replaydbg doctor`: check whether this machine can record and replay, and list what is not covered anywhere."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from replaydbg import __version__
from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, print_json, print_table
from replaydbg.cli.common.program_words import split_words as split_words
from replaydbg.cli.machine.always import current_environments, describe
from replaydbg.errors import NotBuilt, UsageError
from replaydbg.events.show import printable
from replaydbg.gates.uncovered import installed
from replaydbg.native.supported import why_unsupported
from replaydbg.render.measures import show_size

NOT_COVERED = (
    "gevent's event loop, gRPC, a second interpreter in the process: a recording ends where one of them begins",
    "child processes that are not Python programs: unrecorded, but what the program reads from them is recorded",
    "C code that reads the clock or the network directly (such as some database drivers)",
    "threads that C code starts and that call into Python; the program's own threads are recorded",
    "shared memory that is read while another process writes it, or of more than 64 MiB",
    "free-threaded builds of Python, and interpreters other than CPython",
)
"""Limits of every recording, whatever the machine."""


TRACE_LIMIT = "1G"
"""Default maximum size of a tick trace (see `--trace-limit`): some 300 million ticks."""


class DoctorCheck(NamedTuple):
    """The result of one check."""

    name: str
    """The name of what was checked."""
    is_fine: bool
    """Whether the check passed."""
    is_needed: bool
    """Whether recording or replaying is impossible without it."""
    detail: str
    """The result of the check."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = (
        "replaydbg doctor [--json] [--trace [options] [--] (prog.py | -m module | -c code | command) [args ...]]"
    )
    add_json(parser)
    _add_trace_arguments(parser)


def _add_trace_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options for --trace")
    group.add_argument(
        "--trace",
        action="store_true",
        help="record a program, replay it, and compare every tick of both",
    )
    group.add_argument(
        "--trace-limit", metavar="SIZE", help=f"compare at most SIZE of each trace (default: {TRACE_LIMIT})"
    )
    group.add_argument(
        "--replays", type=int, metavar="N", help="replay up to N times, until a replay differs (default: 1)"
    )
    group.add_argument("--chaos", metavar="SEED", help="as for record")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help="keep the recording in FILE")


def run(args: argparse.Namespace) -> int:
    """Run all checks; return 1 if this machine cannot record and replay. Or compare two runs."""
    if args.trace:
        # Imported here: the usual doctor needs neither the recorder nor a replay.
        from replaydbg.cli.machine.doctor_trace import run as run_trace

        return run_trace(args, limit=args.trace_limit or TRACE_LIMIT)
    if args.program:
        raise UsageError("doctor takes a program only with --trace; without --trace it checks this machine.")
    checks = [_python(), _core(), _compiler(), _packages(), _fence(), *_calls(), _store(), _always(), _strace()]
    uncovered = installed()
    can_work = all(check.is_fine for check in checks if check.is_needed)
    if args.json:
        facts = [check._asdict() for check in checks]
        packages = [package._asdict() for package in uncovered]
        print_json(
            {
                "version": __version__,
                "ok": can_work,
                "checks": facts,
                "not_covered": list(NOT_COVERED),
                "uncovered_packages": packages,
            }
        )
        return 0 if can_work else 1
    rows = [(_mark(check), check.name, printable(check.detail)) for check in checks]
    print_table(("", "what", "found"), rows)
    print("\nNot covered (if a program uses one of these, the recording notes it):")
    for text in NOT_COVERED:
        print(f"  - {text}")
    if uncovered:
        print("\nInstalled packages that are not fully covered, and why:")
        for package in uncovered:
            print(f"  - {package.module} {package.why}")
    print(f"\nThis machine can{'' if can_work else 'not'} record and replay.")
    return 0 if can_work else 1


def _mark(check: DoctorCheck) -> str:
    return "ok" if check.is_fine else "MISSING" if check.is_needed else "without"


def _python() -> DoctorCheck:
    name = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()}"
    problem = why_unsupported()
    return DoctorCheck("python", not problem, True, f"{name}; {problem}" if problem else name)


def _core() -> DoctorCheck:
    try:
        module = importlib.import_module("replaydbg.native._core")
    except ImportError as error:
        # The sentence already covers a missing module; for one that cannot be loaded, the error gives the reason.
        missing = importlib.util.find_spec("replaydbg.native") is None or "No module named" in str(error)
        return DoctorCheck("native core", False, True, str(NotBuilt("" if missing else str(error))))
    return DoctorCheck("native core", True, True, str(module.__file__))


def _always() -> DoctorCheck:
    found = [f"on in {where}, keeps {describe(ring)}" for where, ring in current_environments()]
    return DoctorCheck(
        "always", True, False, "; ".join(found) or "off in the environment of replaydbg, and in the activated one"
    )


def _compiler() -> DoctorCheck:
    compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    found = [compiler or "no C compiler", str(header) if header.exists() else f"no {header}"]
    return DoctorCheck("compiler", compiler is not None and header.exists(), False, ", ".join(found))


def _packages() -> DoctorCheck:
    missing = [name for name in ("zstandard", "platformdirs", "rich") if importlib.util.find_spec(name) is None]
    return DoctorCheck("packages", not missing, True, f"missing: {', '.join(missing)}" if missing else "all installed")


_TRIAL = """
import os, sys
from replaydbg.native import _core

try:
    _core.fence(int(sys.argv[1]))
except OSError as error:
    sys.exit(error.strerror)
os.rmdir(sys.argv[2])
"""


def _fence() -> DoctorCheck:
    """Install the fence in a separate process, which then makes a forbidden system call."""
    without = "replays stop with exit code 7, or run unprotected with --no-fence"
    with tempfile.TemporaryDirectory() as victim, tempfile.TemporaryFile() as report:
        trial = Path(victim, "trial")
        trial.mkdir()
        # Nothing is imported from the working directory: it may be a checkout without a core, or somebody else's.
        home = str(Path(__file__).parents[3])
        code = f"import sys; sys.path.append({home!r})\n{_TRIAL}"
        command = [sys.executable, "-P", "-c", code, str(report.fileno()), str(trial)]
        try:
            tried = subprocess.run(command, pass_fds=[report.fileno()], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired) as error:
            return DoctorCheck("fence", False, True, f"the test of the fence failed ({error}); {without}")
        report.seek(0)
        is_refused = trial.exists() and b"rmdir" in report.read()
    if tried.returncode == 4 and is_refused:
        return DoctorCheck(
            "fence", True, True, f"tested: the kernel refuses system calls that are not allowed{_landlock()}"
        )
    lines = tried.stderr.strip().splitlines()
    reason = lines[-1] if lines else "a forbidden system call was not refused"
    return DoctorCheck("fence", False, True, f"not available ({reason}); {without}")


def _calls() -> list[DoctorCheck]:
    """Make the system calls that some containers refuse."""
    lost = "of a program with children, only the first process is recorded"
    return [
        _tried("memory files", "memfd_create", _memory_file, lost="no replay is possible", is_needed=True),
        _tried("other processes", "pidfd_open", _own_process, lost=lost, is_needed=False),
    ]


def _memory_file() -> int:
    return os.memfd_create("replaydbg-doctor")


def _own_process() -> int:
    return os.pidfd_open(os.getpid())


def _tried(name: str, call: str, make: Callable[[], int], *, lost: str, is_needed: bool) -> DoctorCheck:
    try:
        os.close(make())
    except OSError as error:
        return DoctorCheck(name, False, is_needed, f"{call} is refused ({error.strerror}): {lost}")
    except AttributeError:
        return DoctorCheck(name, False, is_needed, f"this system has no {call}: {lost}")
    return DoctorCheck(name, True, is_needed, f"tested: {call} works")


def _landlock() -> str:
    try:
        modules = Path("/sys/kernel/security/lsm").read_text().split(",")
    except OSError:
        return ""
    return ", and Landlock protects files, too" if "landlock" in modules else "; this kernel has no Landlock"


def _store() -> DoctorCheck:
    directory = the_store().directory
    # The first recording creates the store itself: doctor leaves nothing behind.
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        return DoctorCheck("store", False, True, f"{directory} cannot be written ({error.strerror})")
    return DoctorCheck("store", True, True, f"{directory}, {show_size(free)} free")


def _strace() -> DoctorCheck:
    path = shutil.which("strace")
    return DoctorCheck("strace", path is not None, False, path or "not installed; only a test needs it")
