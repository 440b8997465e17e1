"""Replays a recording: starts the recorded interpreter with the log instead of the outside, and reads how it ended."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from replaydbg.config import orders_of_tests
from replaydbg.errors import Corrupt, WrongPython
from replaydbg.events.environment import Header
from replaydbg.gates.row import Row
from replaydbg.gates.table import gate_table
from replaydbg.launch import interpreter
from replaydbg.launch.asked import VARIABLE
from replaydbg.launch.boot import boot_values
from replaydbg.launch.process import run_process
from replaydbg.log.codec import encode_value
from replaydbg.log.reader import Recording, open_recording
from replaydbg.native import core_file
from replaydbg.replay.result import ReplayResult, lenient_result, missing, strict_result, with_ending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replaydbg.replay.clock import ClockReport, Orders
    from replaydbg.replay.lenient import Lenient
    from replaydbg.trace.orders import TraceOrders

HIGH = 200
"""Our descriptors in the program's process start above those that it will use; the core moves them higher still."""


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

    `name` is how a command names the recording, for messages (default: its path). `current_source` runs today's source
    files instead of the recorded ones; `stop_at` ends the replay before that event; `clock` counts lines; `stdout` and
    `stderr` are descriptors for what the program prints, None for our own; `trace` says where every tick is written,
    None for nowhere. `with_outcome` asks how the program ended.

    `lenient` is for edited code, and says how: what it asks is looked for in the whole recording, and each liberty is
    listed; where the recording has no answer, `cannot_test` says so.

    Raises the errors of `open_recording`, WrongPython if the recorded Python is not here, NotBuilt without the core for
    it, UsageError for a `check` that is no expression.
    """
    if lenient is not None:
        lenient.must_be_sound()
    with open_recording(path) as recording, ExitStack() as stack:
        more: dict[str, Any] = {"current_source": current_source, "stop_at": stop_at}
        if lenient is not None:
            more |= lenient.as_boot(recording, current_source=current_source)
        ending_file = _memory_file("ending") if lenient is not None or with_outcome else None
        if ending_file is not None:
            more["ending_fd"] = inheritable(stack, stack.enter_context(ending_file).fileno())
        more["trace"] = trace.as_boot() if trace is not None else None
        counting = _Counting.begin(stack, clock) if clock is not None else None
        if counting is not None:
            more["clock"] = counting.as_boot(stack)
        variables = {VARIABLE: lenient.asked} if lenient is not None and lenient.asked else {}
        start = prepare(recording, stack, more, stdout=stdout, stderr=stderr, variables=variables)
        ended = run_process(start.command, start.env, fds=start.streams, ignored=start.ignored)
        report = _whole(start.report)
        read_result = strict_result if lenient is None else lenient_result
        result = read_result(recording, ended.status, report, start.is_cut, name or str(path))
        if ending_file is not None:
            result = with_ending(result, _whole(ending_file), recording)
        if counting is not None and result.divergence is None:
            result = replace(result, clock=counting.report())
        return replace(result, python=recording.header.python.version, missing=missing(recording))


@dataclass(frozen=True, slots=True)
class Start:
    """All that the process of a replay is started with."""

    command: list[str]
    """The interpreter and its options."""
    env: dict[str, str]
    """The environment."""
    streams: list[int]
    """What stands for the program's standard streams; -1: closed."""
    ignored: list[int]
    """The numbers of the signals that it ignores from the start."""
    report: BinaryIO
    """Where it says why it ended early, if it does."""
    is_cut: bool
    """Whether a part of the log is damaged or missing."""


def prepare(
    recording: Recording,
    stack: ExitStack,
    more: dict[str, Any],
    *,
    stdout: int | None = None,
    stderr: int | None = None,
    follows: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Start:
    """Return what a replay of `recording` is started with; the files for it are closed with `stack`.

    `more` is told to the core besides what every replay needs; `variables` are in the environment besides those that
    were recorded. With `follows` the recording is a live directory whose program runs: the replay runs behind it.
    Raises WrongPython, NotBuilt and Corrupt.
    """
    header = recording.header
    executable = _find_python(recording)
    core = core_file(header.python.soabi)
    if follows:
        files, is_cut = _followed(recording.path, stack), False
    else:
        files = {name: stack.enter_context(_memory_file(name)) for name in ("log", "world", "content")}
        unpacked = recording.unpack(files)
        is_cut = unpacked.is_cut
        if unpacked.is_world_cut:
            raise Corrupt(str(recording.path), "a part of the modules that it imported is missing")
    report = stack.enter_context(_memory_file("report"))
    boot_file = stack.enter_context(_memory_file("boot"))
    fds = {f"{name}_fd": inheritable(stack, file.fileno()) for name, file in files.items()}
    fds["report_fd"] = inheritable(stack, report.fileno())
    fds["out_fd"] = inheritable(stack, 1 if stdout is None else stdout)
    fds["err_fd"] = inheritable(stack, 2 if stderr is None else stderr)
    options = interpreter.split_options(list(header.python.flags))
    given = {**header.env, **variables}
    env = interpreter.start_environment(given, options, header.hash_seed)
    boot = boot_values({**header.raw, "env": given}, _recorded_table(header), env) | fds | orders_of_tests()
    boot |= {"mode": "replay", "fds": list(header.fds), "follows": follows} | more
    boot_file.write(encode_value(boot))
    boot_file.flush()
    boot_path = f"/proc/self/fd/{inheritable(stack, boot_file.fileno())}"
    return Start(
        command=interpreter.command_line(executable, options, core, boot_path),
        env=env,
        streams=[_stand_in(stack, kind, fd) for fd, kind in enumerate(header.stdio)],
        ignored=[int(number) for number, state in header.signals.items() if state == "ignored"],
        report=report,
        is_cut=is_cut,
    )


@dataclass(frozen=True, slots=True)
class _Counting:
    """What the step clock of a replay is told, and the files that it writes."""

    orders: Orders
    totals: BinaryIO
    """The report, written at the end."""
    steps: BinaryIO
    """The lines before each event, written as they come."""

    @classmethod
    def begin(cls, stack: ExitStack, orders: Orders) -> _Counting:
        return cls(orders, stack.enter_context(_memory_file("clock")), stack.enter_context(_memory_file("steps")))

    def as_boot(self, stack: ExitStack) -> dict[str, Any]:
        return self.orders.as_boot(inheritable(stack, self.totals.fileno()), inheritable(stack, self.steps.fileno()))

    def report(self) -> ClockReport:
        # Imported here: a replay without a clock need not.
        from replaydbg.replay.clock import read_report

        return read_report(_whole(self.totals), _whole(self.steps), self.orders)


def _followed(live: Path, stack: ExitStack) -> dict[str, BinaryIO]:
    """Return the logs of a program that runs, as soon as they are there; raises Corrupt if they never are."""
    # Imported here: few replays run behind their recording.
    import time

    for _ in range(1000):
        logs = [live / name for name in ("log", "world")]
        if all(each.exists() and each.stat().st_size for each in logs):
            files = {each.name: stack.enter_context(each.open("rb")) for each in logs}
            # Copies of large files are not followed: a program that reads one is replayed from the sealed recording.
            return files | {"content": stack.enter_context(_memory_file("content"))}
        time.sleep(0.01)
    raise Corrupt(str(live), "its program has not begun")


def _find_python(recording: Recording) -> str:
    """Return the interpreter to run: the recorded one, or this one if it is the same build."""
    python = recording.header.python
    if python.hexversion == sys.hexversion and python.soabi == interpreter.soabi():
        same_place = python.executable == sys.executable or not Path(python.executable).exists()
        return sys.executable if same_place else python.executable
    if Path(python.executable).exists():
        # The build too: a free-threaded or a debug one has the same version.
        question = "import sys,_imp;print(sys.hexversion,_imp.extension_suffixes()[0])"
        import subprocess  # 3 ms that a replay in the same interpreter need not take

        answer = subprocess.run([python.executable, "-S", "-c", question], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == f"{python.hexversion} .{python.soabi}.so":
            return python.executable
    found = sys.version.split()[0]
    if found == python.version:
        found += f" (another build of it, {interpreter.soabi()})"
    raise WrongPython(str(recording.path), python.version, found)


def _recorded_table(header: Header) -> list[Row]:
    """Return the rows of this tool under the recording's ids; a row that it has and we lack stays unbound."""
    own = {row.full_name: row for row in gate_table(sys.path)}
    table: list[Row] = []
    for gate in header.gates:
        row = own.get(gate.name)
        table.append(row if row is not None else Row("-", gate.name, "regular", 0))
    return table


def _whole(file: BinaryIO) -> bytes:
    """Return all that the program's process has written into a memory file."""
    file.seek(0)
    return file.read()


def _memory_file(name: str) -> BinaryIO:
    return os.fdopen(os.memfd_create(f"replaydbg-{name}"), "w+b")


def inheritable(stack: ExitStack, fd: int) -> int:
    """Return an inheritable copy of `fd` with a high number."""
    import fcntl  # here for one call; nothing else of the launcher needs it

    copy = fcntl.fcntl(fd, fcntl.F_DUPFD, HIGH)
    stack.callback(os.close, copy)
    return copy


def _stand_in(stack: ExitStack, kind: str, fd: int) -> int:
    """Return a descriptor of the kind that the program's standard stream `fd` was; -1 for closed.

    The interpreter chooses buffering by what it finds at its start. Nothing is read from these or written to them.
    """
    if kind == "closed":
        return -1
    if kind == "tty":
        keep, use = os.openpty()
    elif kind == "pipe":
        reader, writer = os.pipe()
        use, keep = (reader, writer) if fd == 0 else (writer, reader)
    elif kind == "socket":
        import socket  # 2 ms that the usual replay need not take

        ends = socket.socketpair()
        keep, use = (end.detach() for end in ends)
    else:
        keep = os.open(os.devnull, os.O_RDWR)
        use = os.memfd_create("replaydbg-stream") if kind == "file" else os.dup(keep)
    stack.callback(os.close, keep)
    stack.callback(os.close, use)
    return use
