"""Record one run: make the live directory, run the program with the core in it, seal the recording."""

from __future__ import annotations

import os
import time
from pathlib import Path

from replaydbg.config import Settings, load_settings, orders_of_tests
from replaydbg.gates.table import OWN, gate_table
from replaydbg.launch import interpreter
from replaydbg.launch.interruption import postponed
from replaydbg.launch.process import Ended, run_process
from replaydbg.launch.processors import processors
from replaydbg.launch.program_python import split_command
from replaydbg.launch.quiet_start import without_second_warning
from replaydbg.native import check_interpreter, core_file
from replaydbg.record.place import handled_signals, make_live_directory, removed_unless_begun, shared_store
from replaydbg.record.result import RecordResult
from replaydbg.record.snapshot_orders import NO_SNAPSHOTS, SnapshotOrders
from replaydbg.record.start import Wishes, make_header, wanted_program, write_files
from replaydbg.store.directory import GROUP, sealed_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from replaydbg.record.cut_clock import CutClock
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
    blocks: Path | None = None,
    cut_every: float = 0,
    follows_activated: bool = False,
    in_background: bool = False,
    only_failing: bool = False,
    stands_in: bool = False,
) -> RecordResult:
    """Record the program that `argv` names, see `split_command` and `find_target`, and seal the recording.

    `output` is the recording's path (default: a new name in the store); `settings` are loaded if not given; `stdout`
    and `stderr` are descriptors for the program's streams, None to inherit; `trace` orders a trace of every tick, None
    for none; `started` is called once the program runs, with the live directory and the path that the recording will
    have; it must not raise; `snapshots` orders snapshots of the heap; `hash_seed` is that of string hashes, None for
    the choice of `choose_hash_seed`; `finish` replaces `seal_recording` when the program has ended; `running` is called
    with its process id, and must not raise; `children` is "fork" to record each child that it forks, too, all in the
    directory of a group, "python" to record the Python programs that it starts as well, or "none"; `blocks` is the
    directory whose shared blocks their recordings use, None for the group's own; `cut_every` is the interval in seconds
    between live cuts of the group, 0 for none; `follows_activated`: see `split_command`; `in_background`: this process
    ends when the program has, and a copy of it returns; `only_failing`: the recording is removed if no request failed,
    nor the program itself, and so are those of its children, each when it ends; `stands_in`: this process was started
    as the program, so that one ends if this one is killed, and the result has whether a request failed.

    Raises UsageError for a target that cannot be recorded, UnsupportedPython in an interpreter that the core does not
    support, NotBuilt without the core, CannotRecord if nothing can be written.
    """
    check_interpreter()
    settings = load_settings() if settings is None else settings
    wanted = wanted_program(split_command(argv, follows_activated=follows_activated))
    core = core_file(interpreter.soabi())
    group = _new_group(output, settings, children, blocks, only_failing, stands_in) if children != "none" else None
    live = make_live_directory(output, settings.store) if group is None else group.live
    with removed_unless_begun(live) if group is None else group.removed_unless_begun():
        seed = interpreter.choose_hash_seed(wanted.environment, wanted.options) if hash_seed is None else hash_seed
        table = gate_table(wanted.python.search_path)
        fds = (None, stdout, stderr)
        wishes = _wishes(settings)
        header = make_header(wanted, seed, table, live, wishes, fds)
        if group is not None:
            group.describe(header, (1 if stdout is None else stdout, 2 if stderr is None else stderr))
        tests = orders_of_tests()
        orders = _orders(live, wishes, trace, snapshots, group) | tests | ({"parent": os.getpid()} if stands_in else {})
        start = write_files(wanted, live, header, table, orders, core=core, name=wanted.python.executable)
        if group is not None:
            group.invite(wishes, table[len(OWN) :], tests)
            group.start_sealer(header)
        clock = _cut_clock(group, cut_every)
        began = time.monotonic()
        ended = run_process(
            start.command,
            without_second_warning(start.environment) if stderr is None else start.environment,
            fds=fds,
            ignored=[int(number) for number in header["signals"]],
            meanwhile=lambda pid: _meanwhile(live, clock, started, running, pid),
            handled=lambda: handled_signals(live),
        )
        if clock is not None:
            clock.stop()
        seconds = time.monotonic() - began
    if in_background:
        # Imported here: few programs are recorded so.
        from replaydbg.launch.background import leave_the_foreground

        leave_the_foreground(ended.status)
    with postponed():  # a signal to a whole group is meant for the program, and its recording is wanted
        is_failing = stands_in and _has_failed_request(live)
        store = shared_store(output, settings.store)
        result = _sealed(live, ended, seconds, group, finish, store, only_failing=only_failing)
    return result._replace(has_failed_request=is_failing) if stands_in else result


def _has_failed_request(live: Path) -> bool:
    # Imported here: few recordings are judged.
    from replaydbg.record.sealer.failing import has_failed_request, has_failed_request_in

    return has_failed_request_in(live.parent) if live.parent.name.endswith(GROUP) else has_failed_request(live)


def _dropped(live: Path, ended: Ended) -> RecordResult | None:
    """Remove a recording in which nothing has failed; None: something has."""
    # Imported here: few recordings are dropped.
    from replaydbg.record.sealer.failing import dropped, has_failed

    return None if has_failed(live, ended.status) else dropped(live, ended)


def _sealed(
    live: Path,
    ended: Ended,
    seconds: float,
    group: RecordedGroup | None,
    finish: Callable[[Path, Ended, float], RecordResult] | None,
    store: Path | None,
    *,
    only_failing: bool,
) -> RecordResult:
    if finish is not None:
        if group is not None:
            group.finish(ended.status)
        return finish(live, ended, seconds)
    # Imported here: see _load_sealing.
    from replaydbg.record.sealing import seal_recording
    from replaydbg.store.sealed_leftovers import remove_sealed_leftovers

    if group is not None:
        result = group.seal(ended, seconds)
    elif only_failing and (passed := _dropped(live, ended)) is not None:
        result = passed
    else:
        result = seal_recording(live, ended, seconds, store=store)
    if store is not None:
        remove_sealed_leftovers(store)  # of recorders that were killed
    return result


def _wishes(settings: Settings) -> Wishes:
    return Wishes(
        settings.max_size,
        settings.real_ids,
        settings.chaos,
        settings.on_deadlock,
        settings.durable,
        settings.checkpoint_events,
        settings.checkpoint_size,
        settings.secrets == "keep",
        settings.secret_names,
        settings.recipients,
        settings.secret_patterns,
    )


def _new_group(
    output: Path | None, settings: Settings, children: str, blocks: Path | None, only_failing: bool, stands_in: bool
) -> RecordedGroup:
    # Imported here: most recordings are of one process.
    from replaydbg.record.group import RecordedGroup

    joins = children == "python"
    return RecordedGroup(
        output, settings, joins=joins, blocks=blocks, only_failing=only_failing, tags_failing=stands_in
    )


def _orders(
    live: Path,
    wishes: Wishes,
    trace: TraceOrders | None,
    snapshots: SnapshotOrders,
    group: RecordedGroup | None,
) -> dict[str, object]:
    return {
        **(group.as_boot() if group is not None else {}),
        **wishes.as_boot(),
        "mode": "record",
        "live_dir": os.fsencode(live),
        "trace": trace.as_boot() if trace is not None else None,
        "snapshots": snapshots.as_boot(),
    }


def _cut_clock(group: RecordedGroup | None, interval: float) -> CutClock | None:
    if group is None or not interval:
        return None
    # Imported here: few recordings take cuts.
    from replaydbg.record.cut_clock import CutClock

    return CutClock(group.live.parent, interval)


def _meanwhile(
    live: Path,
    clock: CutClock | None,
    started: Callable[[Path, Path], None] | None,
    running: Callable[[int], None] | None,
    pid: int,
) -> None:
    if running is not None:
        running(pid)
    if clock is not None:
        clock.start()
    if started is not None:
        started(live, sealed_path(live))
    # With two processors, the program's threads may need both in its first milliseconds: who wins a race depends on it.
    if processors() > 2:
        _load_sealing()


def _load_sealing() -> None:
    """Import modules that only sealing needs while the program runs."""
    try:
        import replaydbg.record.sealing
        import replaydbg.store.sealed_leftovers  # noqa: F401
        from replaydbg.log.sealed.zstd import load_zstd

        load_zstd()
    except ImportError:
        # Reported when the recording is to be sealed: the program runs already, and must be waited for.
        return
