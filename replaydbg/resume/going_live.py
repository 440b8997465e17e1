"""One resumption: open what the program had open, settle its calls in flight, and answer its core."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from replaydbg.classes import dataclass, replace
from replaydbg.errors import CannotResume
from replaydbg.launch.process import ended_by_signals
from replaydbg.log.edit.other_answer import NewAnswer
from replaydbg.resources.kinds import OpenedFile, OpenResource
from replaydbg.resume.calls.situation import Situation
from replaydbg.resume.checks.files_in_flight import FilesInFlight, files_in_flight
from replaydbg.resume.conversation import CoreAnswer, Due, Settled, read_due
from replaydbg.resume.findings import CallVerdict, Finding, repeat
from replaydbg.resume.hooks import Hooks
from replaydbg.resume.in_flight import examine
from replaydbg.resume.outside_acts import OutsideAct
from replaydbg.resume.plan import Plan
from replaydbg.resume.plan_rows import CannotReopen, Fate, PlanRow
from replaydbg.resume.preparation import check_differences, check_refused
from replaydbg.resume.reopening.compare_files import content_differences
from replaydbg.resume.reopening.patience import Waits, reopen_patiently
from replaydbg.resume.reopening.remade_memory import unmapped
from replaydbg.resume.reopening.reopen_files import grown
from replaydbg.resume.reopening.rules import is_compared, written_files
from replaydbg.resume.restore import Restorer
from replaydbg.resume.settle import ASK, Ask, ask_hooks, settle
from replaydbg.resume.tls_loads import plan_loads, send_loads

_OF_MAPS = 800
"""Descriptors of memory maps have numbers from there on in a replay."""


@dataclass(frozen=True, slots=True)
class ResumeChoices:
    """The user's choices."""

    at: int = 0
    """The event before which the program goes live; 0: after the last one."""
    policy: str = ASK
    """How to deal with a call of which it is not known whether it was made: `ask`, `repeat` or `skip`."""
    force: bool = False
    """Whether it goes live although files differ or something cannot be brought back."""
    after_power_loss: bool = False
    """Whether the machine lost power, so that the disk may lack writes, or have some that the log lacks."""
    answer: NewAnswer | None = None
    """Another answer of an event before that; None: all are as recorded."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Functions of the caller: some hear of the progress, one answers questions."""

    ask: Ask | None = None
    """Asks about a call in flight; None: there is nobody to ask."""
    waits: Waits | None = None
    """Called with an address that is not free yet."""
    begins: Callable[[Plan], None] | None = None
    """Called before the replay begins."""
    goes_live: Callable[[Plan], None] | None = None
    """Called right before the program goes live."""
    notes: Callable[[str], None] | None = None
    """Called with a sentence about images of the standby: one was made, or cannot be used."""

    def note(self, text: str) -> None:
        """Report a sentence about images."""
        if self.notes is not None:
            self.notes(text)


class GoingLive:
    """A resumption from the start of its replay to the moment at which the program goes live."""

    def __init__(
        self,
        plan: Plan,
        choices: ResumeChoices,
        listener: Listener,
        hooks: Hooks,
        stack: ExitStack,
        *,
        is_dry: bool = False,
        read_acts: Callable[[], Sequence[OutsideAct]] = tuple,
    ) -> None:
        """`is_dry`: only the plan is wanted, and nothing is opened; `read_acts` returns all acts after the moment."""
        self.plan = plan
        self.choices = choices
        self.is_live = False
        self.is_planned = False
        """Whether the core has asked, and so the plan is complete."""
        self.is_dry = is_dry
        self.error: BaseException | None = None
        """The error that stopped it."""
        self.signal = 0
        """The signal that ended the replay."""
        self._listener = listener
        self._hooks = hooks
        self._read_acts = read_acts
        self._to_undo: list[OpenedFile] = []
        """Files that are longer than recorded, which the hooks are expected to undo."""
        self._stack = stack
        self._restorer = Restorer(plan.resources, stack, hooks.reopen, self.reopen_by_rule)

    def learn(self, plan: Plan) -> None:
        """Use another plan from here on; nothing is open yet."""
        self.plan = plan
        self._restorer = Restorer(plan.resources, self._stack, self._hooks.reopen, self.reopen_by_rule)

    def reopen_by_rule(self, opened: OpenResource) -> int:
        """Return a descriptor for a resource by its rule. Raises CannotReopen."""
        return reopen_patiently(opened, self._listener.waits, self.pause)

    def pause(self, seconds: float) -> None:
        """Wait for an address to become free."""
        time.sleep(seconds)

    def enter_by_core(self) -> None:
        """Let the core take the program's working directory and mask, which its process did not inherit from us."""
        cwd = self.plan.resources.cwd
        try:
            self._restorer.enter(cwd if isinstance(cwd, str) else None, self.plan.past.umask)
        except OSError as error:
            if not self.choices.force:
                raise CannotResume(
                    self.plan.name, f"its working directory {cwd} cannot be entered: {error.strerror}"
                ) from error

    def open_all(self) -> None:
        """Open what the program had open. Raises CannotResume."""
        refused = self._restorer.try_refused(self.plan.rows)
        check_refused(self.plan, refused, force=self.choices.force)
        check_differences(self.plan, self.plan.differences, force=self.choices.force)
        failed = self._restorer.reopen_all(self.plan.rows)
        if failed and not self.choices.force:
            details = tuple(f"{row.kind}: {row.text}: {_bare(row, reason)}" for row, reason in failed)
            raise CannotResume(self.plan.name, "it cannot be restored as it was (see --force)", details)
        lost = {id(row): _bare(row, reason) for row, reason in failed} | {id(row): row.reason for row in refused}
        rows = tuple(_lost(row, lost[id(row)]) if id(row) in lost else row for row in self.plan.rows)
        self.plan = replace(self.plan, rows=rows)
        try:
            self._restorer.open_leftovers(self.plan.leftovers)
        except CannotReopen as error:
            raise CannotResume(self.plan.name, str(error)) from error

    def note(self, text: str) -> None:
        """Report a sentence about images."""
        self._listener.note(text)

    def begin(self) -> None:
        """Report that all is ready for the replay."""
        if self._listener.begins is not None:
            self._listener.begins(self.plan)

    def converse(self, connection: socket.socket, pid: int, idle: float) -> None:
        """Wait for the core, and answer it. Raises nothing: `error` has what happened."""
        try:
            with ended_by_signals(pid, idle) as first_signal:
                try:
                    connection = self.wait(connection, pid)
                    due = read_due(connection)
                    if due is not None and not first_signal():
                        self.answer(due, CoreAnswer(connection), pid)
                finally:
                    self.signal = first_signal()
        except BaseException as error:  # noqa: BLE001 - the process is waited for first, then it is raised
            self.error = error
        finally:
            connection.close()

    def wait(self, connection: socket.socket, pid: int) -> socket.socket:
        """Do what there is to do until the core of the process `pid` asks, or has ended; nothing here.

        Returns the connection on which it asks. Raises ConnectionError if it has ended without one.
        """
        return connection

    def answer(self, due: Due, answer: CoreAnswer, pid: int) -> None:
        """Decide what is open, and let the program of the process `pid` go live. Raises CannotResume."""
        settled = self.decide(due)
        if not self.is_dry:  # then the core has only reported, and is gone
            self.deliver(due, settled, answer, pid)
            answer.end()
            if not answer.is_followed():
                return  # the core's report has the reason
            if self._listener.goes_live is not None:
                self._listener.goes_live(self.plan)
            if self.is_compensated:
                self._hooks.compensate(self._read_acts())
                self.check_undone()
            self.make_ready()
            self.let_go(answer)

    @property
    def is_compensated(self) -> bool:
        """Whether hooks undo what was done after the moment."""
        return bool(self.choices.at and self.plan.past.act_count and self._hooks.compensators)

    def check_undone(self) -> None:
        """Compare the files that the hooks were expected to shorten. Raises CannotResume."""
        left = tuple(difference for each in self._to_undo if (difference := grown(each)) is not None)
        if left and not self.choices.force:
            names = " and ".join(self._hooks.compensators)
            reason = f"files differ from what was recorded, although {names} undid what was done after it"
            raise CannotResume(self.plan.name, reason, left)

    def decide(self, due: Due) -> list[Settled]:
        """Complete the plan with what the core reports, and return what is done with calls. Raises CannotResume."""
        if due.is_end:
            self.plan = replace(self.plan, event=due.event, thread=None)
            self.is_planned = True
            return []
        situation = self.situation()
        undone = [each for each in due.calls if self.is_compensated and each.thread in self.plan.past.later]
        calls = [each for each in due.calls if each not in undone]
        findings, moved = examine(calls, situation)
        findings = [self._known_later(each) for each in findings]
        # What the disk shows of the others will be gone.
        findings += [repeat(each, f"undone by {' and '.join(self._hooks.compensators)}, then made") for each in undone]
        findings = ask_hooks(findings, self._hooks)
        thread = due.thread if due.thread >= 0 else None
        self.plan = replace(self.plan, event=due.event, thread=thread, in_flight=tuple(findings))
        loads = plan_loads(due.loads, self.plan.resources, self.plan.past)
        differences = (
            *unmapped(self.plan.resources, due.maps),
            *self._changed(files_in_flight(calls, situation)),
            *(each for row in loads for each in row.differences),
        )
        rows = (*(self._with_hook(row) for row in self.plan.rows), *loads)
        all_differences = (*self.plan.differences, *differences)
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

    def situation(self) -> Situation:
        """Return the state of the program at the moment at which it goes live."""
        past = self.plan.past
        return Situation(
            self.plan.resources,
            past.last_ns,
            self.choices.after_power_loss,
            begun_ns=past.begun_ns,
            names=past.names,
        )

    def _known_later(self, finding: Finding) -> Finding:
        """Return a finding with what the log has of a call after the moment."""
        later = self.plan.past.later.get(finding.call.thread)
        if later is None or later.gate != finding.call.call:
            return finding
        if later.raised:
            return repeat(finding.call, f"it failed (event {later.number:,}), will be made")
        if finding.verdict is not CallVerdict.UNKNOWN:
            return finding
        return replace(finding, reason=f"it was made (event {later.number:,})")

    def is_common(self, number: int) -> bool:
        """Whether other processes that go live have the same open file or socket at a descriptor."""
        return False

    def deliver(self, due: Due, settled: Sequence[Settled], answer: CoreAnswer, pid: int) -> None:
        """Put everything in its place in the process `pid`, unless that one ends."""
        if due.is_end:
            return
        self._restorer.match_modes(pid, self.is_common)
        self._restorer.send(answer, due.fds, due.real)
        send_loads(answer, due.loads, self.plan.resources, force=self.choices.force)
        for each in settled:
            answer.settle(each)

    def make_ready(self) -> None:
        """Do the last that can fail, when the core has carried out the answer. Raises CannotResume."""
        try:
            self._restorer.make_ready()
        except CannotReopen as error:
            raise CannotResume(self.plan.name, str(error)) from error

    def let_go(self, answer: CoreAnswer) -> None:
        """Let the program run."""
        try:
            answer.go_live()
        finally:
            self._restorer.close()
        self.is_live = True

    def _with_hook(self, row: PlanRow) -> PlanRow:
        """Return a row with what a hook has made of it; a plan that changes nothing does not ask them."""
        if row.opened is None:
            return row
        if (name := self._hooks.reopened_by(row.opened)) is not None:
            return replace(row, fate=Fate.REOPENED, reason=f"by the hook {name}")
        names = " or ".join(self._hooks.reopeners)
        if self.is_dry and names and row.fate is not Fate.REOPENED:
            return replace(row, reason=f"{row.reason}, unless the hook {names} reopens it")
        return row

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

    def is_growth_known(self, opened: OpenedFile) -> bool:
        """Whether what a file has after its recorded end is known to be of the group; there is none."""
        return False

    def _changed(self, in_flight: FilesInFlight) -> tuple[str, ...]:
        """Return the differences of files that the program writes, as far as no call in flight explains them."""
        written = written_files(self.plan.resources)
        found: list[str] = []
        for each in self.plan.resources.opened:
            if not is_compared(each) or each.absolute not in written or in_flight.explains_size(str(each.absolute)):
                continue
            if each.absolute in in_flight.written:  # perhaps over what was written or read last
                found += content_differences(replace(each, last_write=None, last_read=None))
                continue
            found += content_differences(each)
            difference = grown(each) if not self.choices.after_power_loss else None  # that is cut off
            if difference is None or self.is_growth_known(each):
                continue
            if self.is_compensated and not self.is_dry:
                self._to_undo.append(each)
            else:
                found.append(difference)
        return tuple(dict.fromkeys(found))


def _bare(row: PlanRow, reason: str) -> str:
    """Return the reason why a resource cannot be opened without its name, with which the row begins."""
    return reason.removeprefix(f"{row.text}: ")


def _lost(row: PlanRow, reason: str) -> PlanRow:
    """Return the row of what the program goes live without, with `--force`."""
    left = "; its descriptor is closed" if row.numbers else "; left out"
    return replace(row, fate=Fate.LOST, reason=f"{reason}{left}")
