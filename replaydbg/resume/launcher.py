"""Resume a recorded program: replay it to its last event, or another one, then let it run live into a new recording.

The launcher opens what the program had open, and settles the calls in flight; the core puts it in its place. Nothing of
the program runs live before all of that has succeeded. E. N. Elnozahy et al., A Survey of Rollback-Recovery Protocols
in Message-Passing Systems, ACM Computing Surveys 34 (2002), calls this rollback recovery based on a log.
"""
# Longer than other modules: a resumption is told in one place, from the plan to the program's end.

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from replaydbg.classes import dataclass, replace
from replaydbg.config import Settings, load_settings
from replaydbg.errors import CannotResume, Corrupt
from replaydbg.launch.interruption import postponed, raise_for
from replaydbg.launch.process import Ended, ended_by_signals, run_process
from replaydbg.log.codec import decode_value
from replaydbg.log.container import remove_live
from replaydbg.log.decode import Malformed
from replaydbg.log.reader import Recording, open_recording
from replaydbg.record.place import handled_signals, make_live_directory, write_start
from replaydbg.record.result import RecordResult
from replaydbg.record.sealing import seal_recording
from replaydbg.record.start import Wishes, continuing_command
from replaydbg.replay.launcher import MOST_WRITTEN, Start, UnpackedLogs, prepare
from replaydbg.replay.result import strict_result
from replaydbg.replay.time_limits import idle_limit
from replaydbg.resources.kinds import OpenedFile, Unknown
from replaydbg.resume.after_power_loss import first_missing_write
from replaydbg.resume.conversation import Answer, Due, Settled, moved_high, read_due
from replaydbg.resume.findings import Finding
from replaydbg.resume.hooks import Hooks, installed_hooks
from replaydbg.resume.in_flight import Situation, examine
from replaydbg.resume.past import read_past
from replaydbg.resume.plan import Plan
from replaydbg.resume.preparation import (
    check_differences,
    check_refused,
    continued_header,
    first_orders,
    first_plan,
    held,
    written_to,
)
from replaydbg.resume.reopen_files import grown
from replaydbg.resume.restore import Restorer
from replaydbg.resume.rows import CannotReopen, Fate
from replaydbg.resume.settle import ASK, Ask, ask_hooks, settle
from replaydbg.resume.tls_loads import plan_loads, send_loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_LOGS = ("log", "world", "content")
_OF_MAPS = 800
"""Descriptors of memory maps have numbers from there on in a replay."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user wants."""

    at: int = 0
    """The event before which the program goes live; 0: after the last one."""
    policy: str = ASK
    """What is done with a call of which it is not known whether it was made: `ask`, `repeat` or `skip`."""
    force: bool = False
    """Whether it goes live although files differ or something cannot be brought back."""
    after_power_loss: bool = False
    """Whether the machine lost power, so that the disk may lack writes, or have some that the log lacks."""


@dataclass(frozen=True, slots=True)
class Listener:
    """What the caller wants to know, and answers."""

    ask: Ask | None = None
    """Asks about a call in flight; None: there is nobody to ask."""
    begins: Callable[[Plan], None] | None = None
    """Called before the replay begins."""
    goes_live: Callable[[Plan], None] | None = None
    """Called right before the program goes live."""


def resume(
    path: Path,
    *,
    name: str = "",
    choices: Choices | None = None,
    output: Path | None = None,
    settings: Settings | None = None,
    listener: Listener | None = None,
    hooks: Hooks | None = None,
) -> RecordResult:
    """Run the program of the recording at `path` on, live, from a moment; return its recording, old part included.

    `name` is the recording's name in commands (default: its path), `output` the new one's path (default: a name in the
    store); `settings` are loaded if not given, `hooks` those of installed packages. Raises CannotResume if the program
    cannot go live, Divergence if its replay differs, CannotRecord if nothing can be written, and the errors of
    `open_recording` and `prepare`.
    """
    choices = Choices() if choices is None else choices
    listener = Listener() if listener is None else listener
    settings = load_settings() if settings is None else settings
    name = name or str(path)
    with held(path, name), open_recording(path) as recording, ExitStack() as stack:
        hooks = installed_hooks(name) if hooks is None else hooks
        if choices.after_power_loss:
            choices = replace(choices, at=first_missing_write(recording, name))
        plan = first_plan(recording, name, choices.at, lost_power=choices.after_power_loss)
        if choices.at and plan.past.act_count and hooks.compensate(plan.past.acts):
            plan = first_plan(recording, name, choices.at, lost_power=choices.after_power_loss)
        run = GoingLive(plan, choices, listener, hooks, stack)
        run.open_all()
        live = make_live_directory(output, settings.store)
        with removed_unless_live(live, run):
            ended, seconds = _perform(recording, live, run, settings)
        with postponed():  # a signal to a whole group is meant for the program, and its recording is wanted
            return seal_recording(live, ended, seconds)


def plan_resume(path: Path, *, name: str = "", choices: Choices | None = None, hooks: Hooks | None = None) -> Plan:
    """Return what `resume` would do, and do nothing of it: the program is replayed, and does not go live.

    With the choice `ask`, the plan has the calls in flight that would be asked about. Raises as `resume` does, except
    for what the plan itself contains.
    """
    choices = Choices() if choices is None else choices
    name = name or str(path)
    with open_recording(path) as recording, ExitStack() as stack:
        hooks = installed_hooks(name) if hooks is None else hooks
        if choices.after_power_loss:
            choices = replace(choices, at=first_missing_write(recording, name))
        plan = first_plan(recording, name, choices.at, lost_power=choices.after_power_loss)
        run = GoingLive(plan, choices, Listener(), hooks, stack, is_dry=True)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replaydbg-plan-")))
        live = directory / "plan.rdbg-live"
        live.mkdir(mode=0o700)
        _perform(recording, live, run, load_settings())
        return run.plan


@contextmanager
def removed_unless_live(live: Path, run: GoingLive) -> Iterator[None]:
    """Remove the live directory if the block raises before the program went live."""
    try:
        yield
    except BaseException:
        if live.is_dir() and not run.is_live:
            remove_live(live)
        raise


class GoingLive:
    """A resumption from the start of its replay to the moment at which the program goes live."""

    def __init__(
        self, plan: Plan, choices: Choices, listener: Listener, hooks: Hooks, stack: ExitStack, *, is_dry: bool = False
    ) -> None:
        """`is_dry`: only the plan is wanted, and nothing is opened."""
        self.plan = plan
        self.choices = choices
        self.is_live = False
        self.is_planned = False
        """Whether the core has asked, and so the plan is complete."""
        self.is_dry = is_dry
        self.error: BaseException | None = None
        """What stopped it."""
        self.signal = 0
        """The signal that ended the replay."""
        self._listener = listener
        self._hooks = hooks
        self._stack = stack
        self._restorer = Restorer(plan.resources, stack, hooks.reopen)

    def learn(self, plan: Plan) -> None:
        """Use another plan from here on; nothing is open yet."""
        self.plan = plan
        self._restorer = Restorer(plan.resources, self._stack, self._hooks.reopen)

    def enter_by_core(self) -> None:
        """Let the core take the program's working directory and mask, which its process did not inherit from us."""
        cwd = self.plan.resources.cwd
        try:
            self._restorer.enter(cwd if isinstance(cwd, str) else None, self.plan.past.umask)
        except OSError as error:
            if not self.choices.force:
                raise CannotResume(self.plan.name, f"its working directory {cwd}: {error.strerror}") from error

    def open_all(self) -> None:
        """Open what the program had open. Raises CannotResume."""
        check_refused(self.plan, self._restorer.try_refused(self.plan.rows), force=self.choices.force)
        check_differences(self.plan, self.plan.differences, force=self.choices.force)
        failed = self._restorer.reopen_all(self.plan.rows)
        if failed and not self.choices.force:
            details = tuple(f"{row.kind}: {reason}" for row, reason in failed)
            raise CannotResume(self.plan.name, "it cannot be brought back as it was (see --force)", details)
        try:
            self._restorer.open_leftovers(self.plan.leftovers)
        except CannotReopen as error:
            raise CannotResume(self.plan.name, str(error)) from error
        if self._listener.begins is not None:
            self._listener.begins(self.plan)

    def converse(self, connection: socket.socket, pid: int, idle: float) -> None:
        """Wait for the core, and answer it. Raises nothing: `error` has what happened."""
        try:
            with ended_by_signals(pid, idle) as first_signal:
                try:
                    self.wait(connection, pid)
                    due = read_due(connection)
                    if due is not None and not first_signal():
                        self.answer(due, Answer(connection), pid)
                finally:
                    self.signal = first_signal()
        except BaseException as error:  # noqa: BLE001 - the process is waited for first, then it is raised
            self.error = error
        finally:
            connection.close()

    def wait(self, connection: socket.socket, pid: int) -> None:
        """Do what there is to do until the core of the process `pid` asks, or has ended; nothing here."""

    def answer(self, due: Due, answer: Answer, pid: int) -> None:
        """Decide what is open, and let the program of the process `pid` go live. Raises CannotResume."""
        settled = self.decide(due)
        if not self.is_dry:  # then the core has only reported, and is gone
            self.deliver(due, settled, answer, pid)
            answer.end()
            if not answer.is_followed():
                return  # the core's report has the reason
            if self._listener.goes_live is not None:
                self._listener.goes_live(self.plan)
            self.let_go(answer)

    def decide(self, due: Due) -> list[Settled]:
        """Complete the plan with what the core reports, and return what is done with calls. Raises CannotResume."""
        situation = Situation(self.plan.resources, self.plan.past.last_ns, self.choices.after_power_loss)
        findings, moved = examine(due.calls, situation)
        findings = ask_hooks(findings, self._hooks)
        thread = due.thread if due.thread >= 0 else None
        self.plan = replace(self.plan, event=due.event, thread=thread, in_flight=tuple(findings))
        loads = plan_loads(due.loads, self.plan.resources, self.plan.past)
        differences = (*self._grown(findings), *(each for row in loads for each in row.differences))
        rows, all_differences = (*self.plan.rows, *loads), (*self.plan.differences, *differences)
        self.plan = replace(self.plan, rows=rows, differences=all_differences)
        self.is_planned = True
        if self.is_dry:
            return []  # the core has only reported, and is gone
        check_refused(self.plan, [row for row in loads if row.fate is Fate.REFUSED], force=self.choices.force)
        check_differences(self.plan, differences, force=self.choices.force)
        self._check_known(due)
        name, policy, force = self.plan.name, self.choices.policy, self.choices.force
        settled, findings = settle(findings, name=name, policy=policy, force=force, ask=self._listener.ask)
        self.plan = replace(self.plan, in_flight=tuple(findings))
        self._restorer.move(moved)
        return settled

    def deliver(self, due: Due, settled: Sequence[Settled], answer: Answer, pid: int) -> None:
        """Put everything in its place in the process `pid`."""
        self._restorer.match_modes(pid)
        self._restorer.send(answer, due.fds, due.real)
        send_loads(answer, due.loads, self.plan.resources, force=self.choices.force)
        for each in settled:
            answer.settle(each)

    def let_go(self, answer: Answer) -> None:
        """Let the program run."""
        try:
            self._restorer.truncate()
            answer.go_live()
        finally:
            self._restorer.close()
        self.is_live = True

    def _check_known(self, due: Due) -> None:
        """Raise CannotResume for descriptors of the program that no event has made: C code opened them."""
        known = {*self.plan.resources.by_number(), *due.real, 0, 1, 2}
        unknown = sorted(number for number in set(due.fds) - known if number < _OF_MAPS)
        if unknown and not self.choices.force:
            numbers = ", ".join(map(str, unknown))
            opened, are = (f"descriptors {numbers} were", "they are")
            if len(unknown) == 1:
                opened, are = (f"descriptor {numbers} was", "it is")
            reason = f"{opened} opened by C code, and the recording does not show what {are} (see --force)"
            raise CannotResume(self.plan.name, reason)

    def _grown(self, findings: list[Finding]) -> tuple[str, ...]:
        """Return the differences of files that are longer than recorded, and to which no call in flight wrote."""
        if self.choices.after_power_loss:
            return ()  # that is cut off
        by_number = self.plan.resources.by_number()
        written = [by_number.get(each.call.fd) for each in findings if each.call.data_length]
        names = {each.absolute for each in written if isinstance(each, OpenedFile) and isinstance(each.absolute, str)}
        found = []
        for each in self.plan.resources.opened:
            if isinstance(each, OpenedFile) and each.absolute not in names and (difference := grown(each)) is not None:
                found.append(difference)
        return tuple(dict.fromkeys(found))


def _perform(recording: Recording, live: Path, run: GoingLive, settings: Settings) -> tuple[Ended, float]:
    """Replay the program and let it go live; return how it ended, and after how many seconds."""
    with ExitStack() as stack:
        with written_to(live):
            unpacked = recording.unpack(live)
            write_start(live, continued_header(recording, live, run.plan), first_orders())
        if unpacked.is_world_cut:
            raise Corrupt(str(recording.path), "a part of the modules that it imported is missing")

        def prepared(core_fd: int, started: ExitStack) -> Start:
            start = prepare_live(recording, live, run, core_orders(recording, live, run, settings, core_fd), stack)
            _enter(run, started)
            return start

        return perform(recording, live, run, prepared, stack, idle=idle_limit(recording))


def perform(
    recording: Recording,
    live: Path,
    run: GoingLive,
    prepared: Callable[[int, ExitStack], Start],
    stack: ExitStack,
    *,
    idle: float,
    may_end: bool = False,
) -> tuple[Ended, float]:
    """Run a replay that goes live into the directory `live`; return how it ended, and after how many seconds.

    `prepared` returns its start parameters, given the descriptor of the core's socket; what it enters into its second
    parameter is left as soon as the process has begun. `idle`: seconds that it may wait without computing; 0: any
    number. `may_end`: whether it may end as recorded without going live.
    """
    ours, core_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stack.callback(ours.close)
    core_fd = moved_high(core_end)
    started = stack.enter_context(ExitStack())
    started.callback(os.close, core_fd)
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
    )
    if (reason := reason_of_core(start)) is not None:
        raise CannotResume(run.plan.name, reason)
    if not run.is_live and (live / "log").exists():  # a standby writes it when it goes live
        run.is_live = ended_at_once(live, run, ended)
    if not run.is_live:
        explain(recording, run, start, ended, may_end=may_end)
    return ended, time.monotonic() - began


def prepare_live(
    recording: Recording,
    live: Path,
    run: GoingLive,
    orders: dict[str, object],
    stack: ExitStack,
    *,
    parent: int | None = None,
) -> Start:
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


def _enter(run: GoingLive, started: ExitStack) -> None:
    """Take the program's working directory and its mask for new files, which its process inherits, until it has."""
    cwd, umask = run.plan.resources.cwd, run.plan.past.umask
    if umask is not None:
        started.callback(os.umask, os.umask(umask))
    if isinstance(cwd, Unknown):
        return
    with suppress(OSError):  # ours was removed
        before = Path.cwd()
        started.callback(os.chdir, before)
    try:
        os.chdir(cwd)
    except OSError as error:
        if not run.choices.force and not run.is_dry:
            raise CannotResume(run.plan.name, f"its working directory {cwd}: {error.strerror}") from error


def ended_at_once(live: Path, run: GoingLive, ended: Ended) -> bool:
    """Whether the program ended without any further call: then it needed nothing of what was open."""
    if run.is_dry or run.is_planned or run.error is not None or run.signal or ended.status < 0:
        return False
    with open_recording(live) as recording:
        return read_past(recording, None).has_ended


def reason_of_core(start: Start) -> str | None:
    """Return what the core could not bring back, such as a lock on a database; None: it reports something else."""
    start.report.seek(0)
    report = start.report.read(MOST_WRITTEN)
    try:
        facts = decode_value(report) if report else None
    except Malformed:
        return None
    return str(facts.get("detail")) if isinstance(facts, dict) and facts.get("kind") == "resume" else None


def explain(recording: Recording, run: GoingLive, start: Start, ended: Ended | None, *, may_end: bool) -> None:
    """Raise why the program did not go live, unless that was wanted.

    `ended`: how its replay did; None: not known. `may_end`: whether it was wanted if that ended as recorded.
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
    if may_end and ended is not None and ended.status >= 0:
        return
    status = f" with {ended.status}" if ended is not None else ""
    reason = f"its replay ended{status} before it was due to go live, after {result.events:,} events"
    raise CannotResume(run.plan.name, reason) from run.error
