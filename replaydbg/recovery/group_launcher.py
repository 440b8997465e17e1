"""Resume a group of processes: replay each to its position in the recovery line, and let all go live together.

None of them runs live before all have arrived, and everything that they had open is there again.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from replaydbg.config import Settings, load_settings
from replaydbg.errors import CannotResume
from replaydbg.launch.idle import INTERVAL, IdleWatch, can_watch
from replaydbg.launch.interruption import postponed, raise_for
from replaydbg.launch.process import Ended, ended_by_signals, run_process
from replaydbg.log.group import wake_sealer, write_pid, write_status
from replaydbg.log.reader import Recording, open_recording
from replaydbg.record.place import handled_signals
from replaydbg.record.result import RecordResult
from replaydbg.recovery.continued_group import ContinuedGroup
from replaydbg.recovery.family import Family, Relative
from replaydbg.recovery.group_plan import GroupPlan, all_acts, plan_group
from replaydbg.recovery.made_ends import MadeEnds
from replaydbg.recovery.member_run import MemberRun
from replaydbg.recovery.recovery_line import LineMember, RecoveryLine, find_line
from replaydbg.recovery.written_files import with_written_files
from replaydbg.replay.launcher import ReplayStart
from replaydbg.replay.time_limits import idle_limit
from replaydbg.resume.checks.continuations import Continuation, already_resumed, check_new, find_continuation
from replaydbg.resume.conversation import CallInFlight, CoreAnswer, Due, Settled, moved_high, read_due
from replaydbg.resume.going_live import ResumeChoices
from replaydbg.resume.hooks import Hooks, installed_hooks
from replaydbg.resume.plan_rows import CannotReopen
from replaydbg.resume.preparation import held
from replaydbg.resume.reopening.patience import Waits
from replaydbg.resume.reopening.truncation import Truncation
from replaydbg.resume.replaying import core_orders, explain, prepare_live, reason_of_core
from replaydbg.store.directory import member_path


@dataclass(frozen=True, slots=True)
class GroupListener:
    """Functions of the caller that hear of the progress."""

    waits: Waits | None = None
    """Called with an address that is not free yet."""
    begins: Callable[[GroupPlan], None] | None = None
    """Called before the replays begin."""
    goes_live: Callable[[GroupPlan], None] | None = None
    """Called right before the programs go live."""


def plan_group_resumption(directory: Path, *, name: str = "", at: Mapping[int, int] | None = None) -> GroupPlan:
    """Return what `resume_group` would do, and do nothing of it; no process is replayed. Raises CannotResume."""
    line = find_line(directory, name or str(directory), at or {})
    plan = with_written_files(plan_group(line))
    return replace(plan, continuation=None if at else find_continuation_of(line, load_settings().store))


def resume_group(
    directory: Path,
    *,
    name: str = "",
    at: Mapping[int, int] | None = None,
    choices: ResumeChoices | None = None,
    output: Path | None = None,
    settings: Settings | None = None,
    listener: GroupListener | None = None,
    hooks: Hooks | None = None,
) -> RecordResult:
    """Run the programs of the group in `directory` on, live, from its recovery line; return the result of the first.

    `at` has the latest positions of some processes (default: the ends of their logs); the others are as for `resume`.
    `choices.at` has no meaning here, and the policy `ask` is that of `repeat`. Raises CannotResume if one of them
    cannot go live: then none does; otherwise as `resume`.
    """
    choices = ResumeChoices() if choices is None else choices
    listener = GroupListener() if listener is None else listener
    settings = load_settings() if settings is None else settings
    name = name or str(directory)
    with ExitStack() as stack:
        line = find_line(directory, name, at or {})
        for member in line.running:
            stack.enter_context(held(member_path(directory, member.number), name))
        continuation = None if at or choices.force else find_continuation_of(line, settings.store)
        if continuation is not None:
            raise already_resumed(name, continuation)
        check_new(output)
        hooks = installed_hooks(name) if hooks is None else hooks
        return _Resumption(plan_group(line), choices, listener, hooks, settings, stack).run(output)


def find_continuation_of(line: RecoveryLine, store: Path) -> Continuation | None:
    """Return the newest group in which this one was already resumed; None: it was not."""
    with open_recording(member_path(line.directory, line.running[0].number)) as recording:
        return find_continuation(recording, store)


@dataclass(slots=True)
class _Part:
    """The launcher's side of one process."""

    member: LineMember
    recording: Recording
    run: MemberRun
    ours: socket.socket
    start: ReplayStart
    due: Due | None = None
    settled: list[Settled] = field(default_factory=list)

    @property
    def is_end(self) -> bool:
        """Whether the process ends without any further call."""
        return self.due is not None and self.due.is_end


class _Resumption:
    """The resumption of a group."""

    def __init__(
        self,
        plan: GroupPlan,
        choices: ResumeChoices,
        listener: GroupListener,
        hooks: Hooks,
        settings: Settings,
        stack: ExitStack,
    ) -> None:
        self.plan, self.choices, self.hooks = plan, choices, hooks
        self._listener, self._settings, self._stack = listener, settings, stack
        self._line: RecoveryLine = plan.line
        self._parts: dict[int, _Part] = {}
        self._error: BaseException | None = None
        self._signal = 0
        self._is_live = False

    def run(self, output: Path | None) -> RecordResult:
        """Replay all, and let them go live; return the result of the first process when it has ended."""
        try:
            made = MadeEnds(self.plan.shared, self._stack, self._listener.waits)
            self._truncation = Truncation(self.plan.leftovers, self._stack)
        except CannotReopen as error:
            raise CannotResume(self.plan.name, str(error)) from error
        group = ContinuedGroup(self._line, output, self._settings)
        with self._abandoned_unless_live(group):
            with ExitStack() as stack:
                family = self._prepared(group, made, stack)
                if self._listener.begins is not None:
                    self._listener.begins(self.plan)
                began = time.monotonic()
                ended = self._perform(group, family, made)
                if not self._is_live:
                    self._raise()
        with postponed():
            return group.seal(ended, time.monotonic() - began)

    @contextmanager
    def _abandoned_unless_live(self, group: ContinuedGroup) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if not self._is_live:
                group.abandon()
            raise

    # ---- preparation ----

    def _prepared(self, group: ContinuedGroup, made: MadeEnds, stack: ExitStack) -> Family:
        """Open everything, and make the files of each process. Raises CannotResume."""
        kept = frozenset(each.known_as for each in self._line.members.values())
        wanted = self.plan.shared.wanted()
        core_ends = self._stack.enter_context(ExitStack())
        self._core_ends = core_ends
        for member in self._line.running:
            recording = stack.enter_context(open_recording(member_path(self._line.directory, member.number)))
            wishes = (self.choices, self.hooks, self._listener.waits)
            run = MemberRun(self.plan, member, made, wishes, kept, self._stack)
            run.open_all()
            run.enter_by_core()
            orders = group.begin_member(member, recording, run.plan, self._settings)
            ours, core_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            stack.callback(ours.close)
            core_fd = moved_high(core_end)
            core_ends.callback(os.close, core_fd)
            live = group.live(member.number)
            orders |= core_orders(recording, live, run, self._settings, core_fd)
            orders["resume_sent"] = wanted.get(member.number, [])
            start = prepare_live(recording, live, run, orders, stack, parent=0)
            self._parts[member.number] = _Part(member, recording, run, ours, start)
        group.start_sealer()
        return Family(dict(self._relatives()))

    def _relatives(self) -> Iterator[tuple[int, Relative]]:
        for number, part in self._parts.items():
            yield number, Relative(part.member.row.parent, part.start)
        for number, member in self._line.members.items():
            parent = self._line.members.get(member.row.parent)
            is_reaped = parent is not None and 0 < member.row.waited <= parent.position
            if not member.runs and parent is not None and parent.runs and not is_reaped:
                yield number, Relative(member.row.parent, None, member.row.status or 0)

    # ---- the replays ----

    def _perform(self, group: ContinuedGroup, family: Family, made: MadeEnds) -> Ended:
        first = 1 if 1 in self._parts else min(self._parts)

        def start() -> int:
            family.start()
            return family.pids.get(first, 0) or family.own[0]

        def meanwhile(pid: int) -> None:
            self._core_ends.close()
            self._converse(group, family, made, pid)

        try:
            ended = run_process(
                [], {}, start=start, meanwhile=meanwhile, handled=lambda: handled_signals(group.live(first))
            )
            self._await_others(group, family, first)
        finally:
            family.close()
        row = self._line.members.get(1)
        if first != 1 and row is not None:
            return Ended(row.row.status or 0, 0.0)
        return ended

    def _await_others(self, group: ContinuedGroup, family: Family, first: int) -> None:
        """Wait for processes that are children of ours, because their parents have ended or they had joined."""
        for number in family.own:
            pid = family.pids.get(number, 0)
            if number == first or not pid:
                continue
            if not self._is_live:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError, OSError):
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                if self._is_live:
                    write_status(group.directory, number, status)

    def _converse(self, group: ContinuedGroup, family: Family, made: MadeEnds, pid: int) -> None:
        """Wait for all cores, and let all go live. Raises nothing: `_error` has what happened."""
        try:
            with ended_by_signals(pid) as first_signal:
                try:
                    for number, each in family.pids.items():
                        write_pid(group.directory, number, each)
                    self._await_all(family)
                    if not first_signal():
                        self._go_live(group, family, made)
                        wake_sealer(group.directory)
                finally:
                    self._signal = first_signal()
        except BaseException as error:  # noqa: BLE001 - the processes are waited for first, then it is raised
            self._error = error
        finally:
            for part in self._parts.values():
                part.ours.close()
            if not self._is_live:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)  # our child; what it has started ends with it

    def _await_all(self, family: Family) -> None:
        """Wait until each core has asked. Raises CannotResume if one ends before, or waits for something."""
        waiting = {part.ours.fileno(): part for part in self._parts.values()}
        with ExitStack() as stack:
            watches = {}
            for part in self._parts.values():
                limit = idle_limit(part.recording)
                if limit and can_watch() and part.member.number in family.pids:
                    watch = IdleWatch(family.pids[part.member.number], seconds=limit, outputs=())
                    stack.callback(watch.close)
                    watches[part.ours.fileno()] = watch
            while waiting:
                poll = select.poll()
                for fd in waiting:
                    poll.register(fd, select.POLLIN)
                for fd, _ in poll.poll(INTERVAL * 1000):
                    part = waiting.pop(fd)
                    part.due = read_due(part.ours)
                    if part.due is None:
                        self._explain(part)
                for fd in waiting:
                    if fd in watches:
                        watches[fd].look()

    def _explain(self, part: _Part) -> None:
        """Raise why the replay of a process has ended before it was due to go live."""
        if (reason := reason_of_core(part.start)) is not None:
            raise CannotResume(part.run.plan.name, reason)
        explain(part.recording, part.run, part.start, None)

    def _go_live(self, group: ContinuedGroup, family: Family, made: MadeEnds) -> None:
        sent: dict[tuple[int, int], bytes] = {}
        appended: defaultdict[str, list[CallInFlight]] = defaultdict(list)
        for part in self._parts.values():
            assert part.due is not None, part.member
            for path, call in part.run.appends_in_flight(part.due):
                appended[path].append(call)
        for number, part in self._parts.items():
            assert part.due is not None, number
            part.run.appended = appended
            part.settled = part.run.decide(part.due)
            sent |= {(number, event): data for event, data in part.due.sent}
        plans = {number: part.run.plan for number, part in self._parts.items()}
        self.plan = replace(self.plan, plans=plans, is_replayed=True)
        try:
            made.fill(sent)
        except CannotReopen as error:
            raise CannotResume(self.plan.name, str(error)) from error
        answers = {number: CoreAnswer(part.ours) for number, part in self._parts.items()}
        for number, part in self._parts.items():
            self._deliver(part, answers[number], family)
            answers[number].end()
        for number, part in self._parts.items():
            if not answers[number].is_followed():
                self._explain(part)
        if self._listener.goes_live is not None:
            self._listener.goes_live(self.plan)
        self._compensate()
        for part in self._parts.values():
            part.run.make_ready()
        names = (part.run.kept_names(family.pids[number]) for number, part in self._parts.items() if not part.is_end)
        group.invite(list(dict.fromkeys(chain.from_iterable(names))))
        try:
            self._truncation.perform()
        except CannotReopen as error:
            raise CannotResume(self.plan.name, str(error)) from error
        self._is_live = True
        for number in sorted(self._parts, reverse=True):  # children first: a parent that ends takes them with it
            with suppress(ConnectionError):  # it was killed just now, as it can be at any time
                self._parts[number].run.let_go(answers[number])
        made.close()
        family.let_end()

    def _compensate(self) -> None:
        """Let the hooks undo what was done after the line, now that all processes can go live. Raises CannotResume."""
        if self.plan.acts and self.hooks.compensators:
            self.hooks.compensate(all_acts(self._line))
            for part in self._parts.values():
                part.run.check_undone()

    def _deliver(self, part: _Part, answer: CoreAnswer, family: Family) -> None:
        due = part.due
        assert due is not None, part.member
        if due.is_end:
            return
        real = part.run.kept(due.real)
        pid = family.pids[part.member.number]
        for number, each in family.pids.items():  # first: some of what follows names them
            answer.stand_for_process(self._line.members[number].known_as, each)
        part.run.deliver(replace(due, real=real), part.settled, answer, pid)
        part.run.name_ends(answer)

    def _raise(self) -> None:
        """Raise what has stopped the resumption."""
        if self._signal:
            signal.raise_signal(self._signal)
            raise_for(self._signal)  # its handler continues from here
        if self._error is not None and not isinstance(self._error, BrokenPipeError | ConnectionError):
            raise self._error
        for part in self._parts.values():
            if (reason := reason_of_core(part.start)) is not None:
                raise CannotResume(part.run.plan.name, reason)
        raise CannotResume(self.plan.name, "its replays ended before they were due to go live") from self._error
