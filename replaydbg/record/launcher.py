"""Record one run: make the live directory, run the program with the core in it, seal the recording."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import replaydbg
from replaydbg.classes import NamedTuple
from replaydbg.config import Settings, load_settings, orders_of_tests
from replaydbg.gates.row import SHAPE, Row
from replaydbg.gates.table import gate_table, table_digest
from replaydbg.launch import interpreter
from replaydbg.launch.boot import boot_values
from replaydbg.launch.interruption import postponed
from replaydbg.launch.process import Ended, run_process
from replaydbg.launch.quiet_start import printed_by_itself, without_second_warning
from replaydbg.log.encode import CHECKS, FORMAT
from replaydbg.native import check_interpreter, core_file
from replaydbg.record.collector_start import first_counts
from replaydbg.record.place import make_live_directory, removed_unless_begun, write_start
from replaydbg.record.result import RecordResult
from replaydbg.record.snapshot_orders import NO_SNAPSHOTS, SnapshotOrders
from replaydbg.record.target import Target, find_target
from replaydbg.store.directory import sealed_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from replaydbg.log.json_data import HeaderData
    from replaydbg.record.group import RecordedGroup
    from replaydbg.trace.trace_orders import TraceOrders


def record(
    argv: list[str],
    *,
    output: Path | None = None,
    settings: Settings | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    trace: TraceOrders | None = None,
    started: Callable[[Path, Path], None] | None = None,
    snapshots: SnapshotOrders = NO_SNAPSHOTS,
    hash_seed: int | None = None,
    finish: Callable[[Path, Ended, float], RecordResult] | None = None,
    running: Callable[[int], None] | None = None,
    children: str = "none",
) -> RecordResult:
    """Record the program that `argv` names, see `find_target`, and seal the recording.

    `output` is the recording's path (default: a new name in the store); `settings` are loaded if not given; `stdout`
    and `stderr` are descriptors for the program's streams, None to inherit; `trace` orders a trace of every tick, None
    for none; `started` is called once the program runs, with the live directory and the path that the recording will
    have; it must not raise; `snapshots` orders snapshots of the heap; `hash_seed` is that of string hashes, None for
    the choice of `choose_hash_seed`; `finish` replaces `seal_recording` when the program has ended; `running` is called
    with its process id, and must not raise; `children` is "fork" to record each child that it forks, too, all in the
    directory of a group, or "none". Raises UsageError for a target that cannot be recorded, UnsupportedPython
    in an interpreter that the core does not support, NotBuilt without the core, CannotRecord if nothing can be written.
    """
    check_interpreter()
    settings = load_settings() if settings is None else settings
    wanted = _wanted(argv)
    core = core_file(interpreter.soabi())
    group = _new_group(output, settings) if children == "fork" else None
    live = make_live_directory(output, settings.store) if group is None else group.live
    with removed_unless_begun(live) if group is None else group.removed_unless_begun():
        options, environment = wanted.options, wanted.environment
        seed = interpreter.choose_hash_seed(environment, options) if hash_seed is None else hash_seed
        table = gate_table(sys.path)
        fds = (None, stdout, stderr)
        header = _header(wanted, seed, table, live, settings, fds)
        env = interpreter.start_environment(environment, options, seed)
        if group is not None:
            group.describe(header)
        boot = _boot(live, settings, trace, snapshots, group) | boot_values(header, table, env) | orders_of_tests()
        boot["notes"] = printed_by_itself({} if options.ignore_environment else environment)
        boot_file = write_start(live, header, boot)
        passed = options.passed
        if boot["warnings"]:
            kept = [option for option in interpreter.parse_options(options.given) if option.name != "W"]
            passed = interpreter.passed_words(kept)
        if group is not None:
            group.start_sealer(header["argv"])
        began = time.monotonic()
        ended = run_process(
            interpreter.command_line(sys.executable, passed, core, str(boot_file)),
            without_second_warning(env) if stderr is None else env,
            fds=fds,
            ignored=[int(number) for number in header["signals"]],
            meanwhile=lambda pid: _meanwhile(live, started, running, pid),
            handled=lambda: _handled_signals(live),
        )
        seconds = time.monotonic() - began
    with postponed():  # a signal to a whole group is meant for the program, and its recording is wanted
        if finish is not None:
            return finish(live, ended, seconds)
        if group is not None:
            return group.seal(ended, seconds)
        # Imported here: see _load_sealing.
        from replaydbg.record.sealing import seal_recording

        return seal_recording(live, ended, seconds)


class _Wanted(NamedTuple):
    """The program to record, and the interpreter for it."""

    target: Target
    options: interpreter.Options
    environment: dict[str, str]


def _wanted(argv: list[str]) -> _Wanted:
    own, words = interpreter.leading_options(argv)
    given = [*interpreter.leading_options(sys.orig_argv[1:])[0], *own]
    environment = interpreter.own_environment()
    interpreter.check_recordable(given, environment)
    return _Wanted(find_target(words), interpreter.split_options(given), environment)


def _header(
    wanted: _Wanted, seed: int, table: list[Row], live: Path, settings: Settings, fds: tuple[int | None, ...]
) -> HeaderData:
    target, options, environment = wanted
    header: HeaderData = {
        "format": FORMAT,
        "tool": replaydbg.__version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "name": sealed_path(live).stem,
        "kind": target.kind,
        "target": target.what,
        "argv": target.argv,
        "orig_argv": [sys.orig_argv[0], *options.given, *target.options],
        "cwd": _cwd(),
        "path0": target.path0,
        "env": environment,
        "hash_seed": seed,
        "python": {**interpreter.this_python(), "flags": options.given},
        "platform": " ".join(os.uname()[index] for index in (0, 2, 4)),
        "signals": interpreter.ignored_signals(),
        "fds": interpreter.inherited_fds(),
        "gates": [{"name": row.full_name, "shape": row.flags & SHAPE, "kind": row.kind} for row in table],
        "gates_digest": table_digest(table),
        "real_ids": settings.real_ids,
        "chaos": settings.chaos,
        "collector": list(first_counts(settings.chaos)),
        "stdio": [interpreter.stream_kind(number if fd is None else fd) for number, fd in enumerate(fds)],
    }
    if sys.version_info < (3, 12):
        header["ticks"] = CHECKS
    return header


def _new_group(output: Path | None, settings: Settings) -> RecordedGroup:
    # Imported here: most recordings are of one process.
    from replaydbg.record.group import RecordedGroup

    return RecordedGroup(output, settings)


def _boot(
    live: Path,
    settings: Settings,
    trace: TraceOrders | None,
    snapshots: SnapshotOrders,
    group: RecordedGroup | None,
) -> dict[str, object]:
    return {
        **(group.as_boot() if group is not None else {}),
        "mode": "record",
        "live_dir": os.fsencode(live),
        "max_size": settings.max_size,
        "stop_on_deadlock": settings.on_deadlock == "stop",
        "trace": trace.as_boot() if trace is not None else None,
        "snapshots": snapshots.as_boot(),
    }


def _meanwhile(
    live: Path, started: Callable[[Path, Path], None] | None, running: Callable[[int], None] | None, pid: int
) -> None:
    if running is not None:
        running(pid)
    if started is not None:
        started(live, sealed_path(live))
    _load_sealing()


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _handled_signals(live: Path) -> int:
    """Return how many signals the program has handled: a count in the header of its log, see format.md."""
    try:
        with (live / "log").open("rb") as log:
            return int.from_bytes(log.read(44)[40:], "little")
    except OSError:
        return 0  # it has not begun


def _load_sealing() -> None:
    """Import modules that only sealing needs while the program runs."""
    try:
        import replaydbg.record.sealing  # noqa: F401
        from replaydbg.log.zstd import load_zstandard

        load_zstandard()
    except ImportError:
        # Reported when the recording is to be sealed: the program runs already, and must be waited for.
        return
