"""Run the replay that goes live, and report why it did not."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from replaydbg.config import Settings
from replaydbg.errors import CannotResume
from replaydbg.events.show import show_status
from replaydbg.launch.interruption import raise_for
from replaydbg.launch.process import Ended, run_process
from replaydbg.log.coding.codec import decode_value
from replaydbg.log.coding.decode import Malformed
from replaydbg.log.live_directory import remove_live
from replaydbg.log.reader import Recording
from replaydbg.record.place import handled_signals
from replaydbg.record.start import Wishes, continuing_command
from replaydbg.replay.launcher import MOST_WRITTEN, ReplayStart, prepare
from replaydbg.replay.result import strict_result
from replaydbg.replay.unpacked_logs import UnpackedLogs
from replaydbg.resume.conversation import moved_high
from replaydbg.resume.going_live import GoingLive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_LOGS = ("log", "world", "content")


@contextmanager
def removed_unless_live(live: Path, run: GoingLive) -> Iterator[None]:
    """Remove the live directory if the block raises before the program went live."""
    try:
        yield
    except BaseException:
        if live.is_dir() and not run.is_live:
            remove_live(live)
        raise


def perform(
    recording: Recording,
    live: Path,
    run: GoingLive,
    prepared: Callable[[int, ExitStack], ReplayStart],
    stack: ExitStack,
    *,
    idle: float,
    may_end: Callable[[], bool] | None = None,
    listener: socket.socket | None = None,
    brings_back: Callable[[], int] | None = None,
) -> tuple[Ended, float]:
    """Run a replay that goes live into the directory `live`; return how it ended, and after how many seconds.

    `prepared` returns its start parameters, given the descriptor of the core's socket; what it enters into its second
    parameter is left as soon as the process has begun. `idle`: seconds that it may wait without computing; 0: any
    number. `may_end`: whether the replay was right to end without going live (default: never). `listener`: a socket to
    which the core connects when it is due; its descriptor is -1 then. `brings_back` starts the process in another way,
    and returns its process id.
    """
    started = stack.enter_context(ExitStack())
    ours, core_fd = (listener, -1) if listener is not None else _connected(stack, started)
    start = prepared(core_fd, started)
    began = time.monotonic()

    def meanwhile(pid: int) -> None:
        started.close()
        run.converse(ours, pid, idle)

    ended = run_process(
        start.command,
        start.env,
        fds=start.streams,
        ignored=start.ignored,
        meanwhile=meanwhile,
        handled=lambda: handled_signals(live),
        start=brings_back,
    )
    if (reason := reason_of_core(start)) is not None:
        raise CannotResume(run.plan.name, reason)
    if not run.is_live:
        explain(recording, run, start, ended, may_end=may_end)
    return ended, time.monotonic() - began


def _connected(stack: ExitStack, started: ExitStack) -> tuple[socket.socket, int]:
    """Return our end of a connection, closed with `stack`, and the core's, closed with `started`."""
    ours, core_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stack.callback(ours.close)
    core_fd = moved_high(core_end)
    started.callback(os.close, core_fd)
    return ours, core_fd


def prepare_live(
    recording: Recording,
    live: Path,
    run: GoingLive,
    orders: dict[str, object],
    stack: ExitStack,
    *,
    parent: int | None = None,
) -> ReplayStart:
    """Return the start parameters of a replay that goes live from the logs in `live`; the rest is as for `prepare`."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    stack.callback(os.close, null)
    files: dict[str, BinaryIO] = {each: stack.enter_context((live / each).open("rb")) for each in _LOGS}
    # What was printed before the program went live is not printed again. For a plan the fence is up: nothing goes live.
    parts, goes_live = UnpackedLogs(files), not run.is_dry
    return prepare(recording, stack, orders, stdout=null, stderr=null, parts=parts, goes_live=goes_live, parent=parent)


def core_orders(
    recording: Recording, live: Path, run: GoingLive, settings: Settings, core_fd: int
) -> dict[str, object]:
    """Return the fields with which a replay goes live, into the directory `live`; `core_fd` is the core's socket."""
    header = recording.header
    # The limits of checkpoints are those of the header, as in each replay.
    wishes = Wishes(settings.max_size, header.real_ids, header.chaos, settings.on_deadlock, header.durable)
    return {
        **wishes.as_boot(),
        "resumes": True,
        "resume_at": run.choices.at,
        "resume_fd": core_fd,
        "live_dir": os.fsencode(live),
        "continuing": continuing_command(),
        "resume_dry": run.is_dry,
    }


def reason_of_core(start: ReplayStart) -> str | None:
    """Return what the core could not bring back, such as a lock on a database; None: it reports something else."""
    start.report.seek(0)
    report = start.report.read(MOST_WRITTEN)
    try:
        facts = decode_value(report) if report else None
    except Malformed:
        return None
    return str(facts.get("detail")) if isinstance(facts, dict) and facts.get("kind") == "resume" else None


def explain(
    recording: Recording,
    run: GoingLive,
    start: ReplayStart,
    ended: Ended | None,
    *,
    may_end: Callable[[], bool] | None = None,
) -> None:
    """Raise why the program did not go live, unless that was wanted.

    `ended`: how its replay did; None: not known. `may_end`: see `perform`.
    """
    if run.error is not None and not isinstance(run.error, (BrokenPipeError, ConnectionError)):
        raise run.error
    if run.signal:
        signal.raise_signal(run.signal)
        raise_for(run.signal)  # its handler continues from here
    if run.is_dry and run.is_planned:
        return
    start.report.seek(0)
    report = start.report.read(MOST_WRITTEN)
    if ended is None and not report:  # something else than a divergence
        raise CannotResume(run.plan.name, "its replay ended before it was due to go live") from run.error
    result = strict_result(recording, ended.status if ended is not None else 0, report, start.is_cut, run.plan.name)
    if result.divergence is not None:
        raise result.divergence
    if may_end is not None and may_end():
        return
    how = f" ({show_status(ended.status)})" if ended is not None else ""
    # One that a signal has ended could not report how far it was.
    events = f", after {result.events:,} events" if result.events else ""
    raise CannotResume(run.plan.name, f"its replay ended{how} before it was due to go live{events}") from run.error
