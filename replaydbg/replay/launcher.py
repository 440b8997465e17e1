"""Replay a recording: start the recorded interpreter with the log in place of the outside, and read how it ended."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from replaydbg.classes import dataclass, replace
from replaydbg.config import is_fence_wanted, orders_of_tests
from replaydbg.errors import ForgedMessage
from replaydbg.events.run_facts import Header
from replaydbg.gates.row import Row
from replaydbg.gates.table import table_of_recording
from replaydbg.launch import interpreter
from replaydbg.launch.boot import boot_values
from replaydbg.launch.process import run_replay
from replaydbg.log.coding.codec import encode_value
from replaydbg.log.reader import Recording, open_recording
from replaydbg.replay.find_python import find_python_and_core
from replaydbg.replay.memory_limit import memory_limit
from replaydbg.replay.result import (
    ReplayResult,
    lenient_result,
    missing,
    strict_result,
    uncovered,
    waiting_result,
    with_ending,
)
from replaydbg.replay.start_state import StartState, start_state
from replaydbg.replay.time_limits import CpuLimits, cpu_limits, idle_limit
from replaydbg.replay.unpacked_logs import UnpackedLogs, followed_logs, memory_file, unpack_logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from replaydbg.replay.clock import ClockBoot, ClockReport, Orders
    from replaydbg.replay.lenient import Lenient
    from replaydbg.trace.trace_orders import TraceOrders

MOST_WRITTEN = 64 << 20
"""Maximum size in bytes of each report file that the program's process writes."""

HIGH = 200
"""The program's process gets our descriptors at numbers above those that it will use; the core moves them higher
still.
"""


def replay(
    path: Path,
    *,
    name: str = "",
    current_source: bool = False,
    stop_at: int = 0,
    clock: Orders | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    trace: TraceOrders | None = None,
    lenient: Lenient | None = None,
    with_outcome: bool = False,
) -> ReplayResult:
    """Run the recording at `path` again, verified, touching nothing outside.

    `name` is the recording's name in commands, for messages (default: its path). `current_source` runs today's source
    files instead of the recorded ones; `stop_at` ends the replay before that event; `clock` counts lines; `stdout` and
    `stderr` are descriptors for the program's output, None for our own; `trace` orders a trace of every tick, None for
    none. `with_outcome` adds how the program ended.

    `lenient` is for edited code, and has its options: answers are searched for in the whole recording, and each
    deviation is listed; if the recording has no answer, the result's `cannot_test` contains the reason.

    Raises the errors of `open_recording`, WrongPython if the recorded Python is not installed, NotBuilt without the
    core for it, UsageError for a `check` that is not an expression, NoFence if the kernel does not fence the replay in.
    """
    if lenient is not None:
        lenient.must_be_sound()
    with open_recording(path) as recording, ExitStack() as stack:
        more: dict[str, object] = {"current_source": current_source, "stop_at": stop_at}
        if lenient is not None:
            more |= lenient.as_boot(recording, current_source=current_source)
        ending_file = memory_file("ending") if lenient is not None or with_outcome else None
        if ending_file is not None:
            more["ending_fd"] = inheritable(stack, stack.enter_context(ending_file).fileno())
        more["trace"] = trace.as_boot() if trace is not None else None
        counting = _Counting.begin(stack, clock) if clock is not None else None
        if counting is not None:
            more["clock"] = counting.as_boot(stack)
        variables = _asking(lenient.asked) if lenient is not None and lenient.asked else {}
        start = prepare(recording, stack, more, stdout=stdout, stderr=stderr, variables=variables)
        outputs = [1 if stdout is None else stdout, 2 if stderr is None else stderr]
        result = run_started(recording, start, outputs, name or str(path), is_lenient=lenient is not None)
        return _complete(result, recording, ending_file, counting)


def run_started(
    recording: Recording, start: ReplayStart, outputs: list[int], name: str, *, is_lenient: bool = False
) -> ReplayResult:
    """Run a replay that `prepare` has prepared to its end; `outputs` are descriptors for the program's output."""
    ended = run_replay(
        start.command,
        start.env,
        fds=start.streams,
        ignored=start.ignored,
        outputs=outputs,
        idle=idle_limit(recording),
    )
    if ended.waited:
        return waiting_result(recording, ended.waited, name, is_lenient=is_lenient)
    read_result = lenient_result if is_lenient else strict_result
    return read_result(recording, ended.status, _whole(start.report), start.is_cut, name)


def _asking(question: str) -> dict[str, str]:
    # Imported here: few replays ask the program a question, and the import takes 10 ms.
    from replaydbg.launch.replay_question import VARIABLE

    return {VARIABLE: question}


def _complete(
    result: ReplayResult, recording: Recording, ending_file: BinaryIO | None, counting: _Counting | None
) -> ReplayResult:
    """Return the result with what the program's process has written besides its report, and with the recording's."""
    if ending_file is not None:
        result = with_ending(result, _whole(ending_file), recording)
    if counting is not None and result.divergence is None:
        result = replace(result, clock=counting.report())
    return replace(
        result,
        python=recording.header.python.version,
        missing=missing(recording),
        uncovered=uncovered(recording),
    )


@dataclass(frozen=True, slots=True)
class ReplayStart:
    """The start parameters of a replay's process."""

    command: list[str]
    """The interpreter and its options."""
    env: dict[str, str]
    """The environment."""
    streams: list[int]
    """Descriptors in place of the program's standard streams; -1: closed."""
    ignored: list[int]
    """The numbers of the signals that it ignores from the start."""
    report: BinaryIO
    """The file to which it reports why it ended early, if it does."""
    is_cut: bool
    """Whether a part of the log is damaged or missing."""


def prepare(
    recording: Recording,
    stack: ExitStack,
    more: Mapping[str, object],
    *,
    stdout: int | None = None,
    stderr: int | None = None,
    follows: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
    parts: UnpackedLogs | None = None,
    goes_live: bool = False,
    parent: int | None = None,
    report: BinaryIO | None = None,
) -> ReplayStart:
    """Return the start parameters of a replay of `recording`; the files for it are closed with `stack`.

    `more` are further fields for the core besides those that every replay needs; `variables` are added to the recorded
    environment. With `follows` the recording is a live directory whose program runs: the replay follows behind it.
    `parts` is what the process maps, None to unpack it. With `goes_live` the program runs on behind the end of its log:
    it has no limits and no fence, which nothing could take from it again. `parent` is the process with which it ends
    (default: ours); 0: whichever starts it.
    `report` is the file to which it reports why it ended early (default: one in memory).
    Raises WrongPython, NotBuilt and Corrupt.
    """
    header = recording.header
    executable, core = find_python_and_core(str(recording.path), header.python)
    if parts is None:
        parts = UnpackedLogs(followed_logs(recording.path, stack)) if follows else unpack_logs(recording, stack)
    report = stack.enter_context(memory_file("report")) if report is None else report
    given = {**header.env, **variables}
    recorded_start = interpreter.start_environment(
        given, interpreter.split_options(list(header.python.flags)), header.hash_seed
    )
    state = start_state(header, str(recording.path), executable, recorded_start)
    boot: dict[str, object] = {
        **_boot_of(recording, parts, given, state, follows=follows, goes_live=goes_live),
        **_descriptors(parts, report, stdout, stderr, stack),
        **more,
        "parent": os.getpid() if parent is None else parent,
    }
    if not follows and not goes_live:  # a program that still runs has no peak yet
        boot |= _limits(recording, parts, more)
    return ReplayStart(
        command=interpreter.command_line(executable, state.words, core, _boot_fd(boot, stack)),
        env=state.env,
        streams=[_stand_in(stack, kind, fd) for fd, kind in enumerate(header.stdio)],
        ignored=[int(number) for number, state in header.signals.items() if state == "ignored"],
        report=report,
        is_cut=parts.is_cut,
    )


def _boot_of(
    recording: Recording,
    parts: UnpackedLogs,
    env: Mapping[str, str],
    state: StartState,
    *,
    follows: bool,
    goes_live: bool,
) -> dict[str, object]:
    """Return the fields for the core that come from the recording, and from how it is replayed."""
    header = recording.header
    return {
        **boot_values(_boot_fields(header, env), _recorded_table(header), state.env),
        **orders_of_tests(),
        "mode": "replay",
        "content_place": parts.content_place,
        "fds": list(header.fds),
        "follows": follows,
        "fence": is_fence_wanted() and not goes_live,
        "fork_event": header.branch.event if header.branch is not None else 0,
        **state.boot,
    }


def _descriptors(
    parts: UnpackedLogs, report: BinaryIO, stdout: int | None, stderr: int | None, stack: ExitStack
) -> dict[str, int]:
    """Return the descriptors that the core gets, by the names of its fields."""
    fds = {f"{name}_fd": inheritable(stack, file.fileno()) for name, file in parts.files.items()}
    if parts.content is not None:
        fds["content_fd"] = inheritable(stack, parts.content.fd)
    fds["report_fd"] = inheritable(stack, report.fileno())
    fds["out_fd"] = inheritable(stack, 1 if stdout is None else stdout)
    fds["err_fd"] = inheritable(stack, 2 if stderr is None else stderr)
    return fds


def _boot_fd(boot: Mapping[str, object], stack: ExitStack) -> int:
    """Return a descriptor from which the core reads its orders."""
    file = stack.enter_context(memory_file("boot"))
    file.write(encode_value(boot))
    file.flush()
    return inheritable(stack, file.fileno())


def _limits(recording: Recording, parts: UnpackedLogs, more: Mapping[str, object]) -> dict[str, object]:
    """Return the limits of memory and CPU time as fields for the core."""
    memory = memory_limit(recording, parts.mapped(), is_session="engine" in more)
    return {"memory": memory, **_cpu_limits(recording, more, is_cut=parts.is_cut).as_boot()}


def _cpu_limits(recording: Recording, more: Mapping[str, object], *, is_cut: bool) -> CpuLimits:
    by_lines = any(more.get(name) is not None for name in ("clock", "engine", "trace"))
    limits = cpu_limits(recording, is_cut=is_cut, by_lines=by_lines)
    # After the debugger's first replay, the end of the replay is known.
    session = more.get("engine")
    return limits._replace(after=0.0) if isinstance(session, dict) and session.get("last_line") else limits


@dataclass(frozen=True, slots=True)
class _Counting:
    """The orders to the step clock of a replay, and the files that it writes."""

    orders: Orders
    totals: BinaryIO
    """The report, written at the end."""
    steps: BinaryIO
    """The lines before each event, written as they come."""

    @classmethod
    def begin(cls, stack: ExitStack, orders: Orders) -> _Counting:
        return cls(orders, stack.enter_context(memory_file("clock")), stack.enter_context(memory_file("steps")))

    def as_boot(self, stack: ExitStack) -> ClockBoot:
        return self.orders.as_boot(inheritable(stack, self.totals.fileno()), inheritable(stack, self.steps.fileno()))

    def report(self) -> ClockReport:
        # Imported here: a replay without a clock does not need it.
        from replaydbg.replay.clock import read_report

        return read_report(_whole(self.totals), _whole(self.steps), self.orders)


def _boot_fields(header: Header, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the header that the core needs, as they were checked."""
    names = ("kind", "target", "argv", "orig_argv", "path0", "chaos", "collector", "ticks", "real_ids", "stdio")
    fields: dict[str, Any] = {name: getattr(header, name) for name in names}
    fields |= {name: header.raw[name] for name in ("name", "run", "checkpoints", "continued") if name in header.raw}
    return fields | {"env": env, "python": {"flags": header.python.flags}}


def _recorded_table(header: Header) -> list[Row]:
    """Return the rows of this tool under the recording's ids; a row of the recording that we lack stays unbound."""
    own = {row.full_name: row for row in table_of_recording(sys.path, header.raw.get("rows"))}
    table: list[Row] = []
    for gate in header.gates:
        row = own.get(gate.name)
        table.append(row if row is not None else Row("-", gate.name, "regular", 0))
    return table


def _whole(file: BinaryIO) -> bytes:
    """Return what the program's process has written into a memory file. Raises ForgedMessage if that is too much."""
    if os.fstat(file.fileno()).st_size > MOST_WRITTEN:
        raise ForgedMessage(f"it reported more than {MOST_WRITTEN >> 20} MiB")
    file.seek(0)
    return file.read(MOST_WRITTEN)


def inheritable(stack: ExitStack, fd: int) -> int:
    """Return an inheritable copy of `fd` with a high number."""
    import fcntl  # imported for one call; nothing else in the launcher needs it

    copy = fcntl.fcntl(fd, fcntl.F_DUPFD, HIGH)
    stack.callback(os.close, copy)
    return copy


def _stand_in(stack: ExitStack, kind: str, fd: int) -> int:
    """Return a descriptor of the same kind as the program's standard stream `fd`; -1 for closed.

    The interpreter chooses buffering by the kinds of its streams at the start. Nothing is read from these or written to
    them.
    """
    if kind == "closed":
        return -1
    if kind == "tty":
        # The side of a terminal that its program does not have: nobody need hold the other one for it to be a terminal.
        use, keep = os.openpty()
    elif kind == "pipe":
        reader, writer = os.pipe()
        use, keep = (reader, writer) if fd == 0 else (writer, reader)
    elif kind == "socket":
        import socket  # it takes 2 ms, which the usual replay need not pay

        ends = socket.socketpair()
        keep, use = (end.detach() for end in ends)
    else:
        keep = os.open(os.devnull, os.O_RDWR)
        use = os.memfd_create("replaydbg-stream") if kind == "file" else os.dup(keep)
    stack.callback(os.close, keep)
    stack.callback(os.close, use)
    return use
