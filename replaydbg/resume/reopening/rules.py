"""The table of rules: for each kind of resource, what becomes of it when the program goes live.

A rule decides from the log and the state of the machine, without changing anything; what it does is then opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from replaydbg.classes import replace
from replaydbg.resources.kinds import (
    ChildProcess,
    FileLock,
    FileMapping,
    OpenedDirectory,
    OpenedEpoll,
    OpenedEventFd,
    OpenedFile,
    OpenedMemory,
    OpenedOther,
    OpenedPidFd,
    OpenedPipe,
    OpenedSocket,
    OpenedTerminal,
    OpenedTimerFd,
    OpenResource,
    ProcessSemaphore,
    ProcessTimer,
    Resources,
    SignalAction,
    Unknown,
)
from replaydbg.resume.plan_rows import Fate, PlanRow
from replaydbg.resume.reopening import file_locks, reopen_files, reopen_others, reopen_sockets
from replaydbg.resume.reopening.compare_files import content_differences
from replaydbg.resume.reopening.continued_input import plan_standard_input
from replaydbg.resume.reopening.remade_memory import whole_maps

STANDARD = 3
"""The numbers of the standard streams are below."""


class Rule(NamedTuple):
    """The fate of one kind of descriptor."""

    plan: Callable[[Any], PlanRow]
    """Decides; changes nothing."""
    reopen: Callable[[Any], int]
    """Returns a new descriptor for it, unless the row is refused. Raises CannotReopen."""


def _plan_pipe(opened: OpenedPipe) -> PlanRow:
    return reopen_files.plan_fifo(opened) if opened.path is not None else reopen_others.plan_pipe(opened)


def _reopen_pipe(opened: OpenedPipe) -> int:
    return reopen_files.reopen_fifo(opened) if opened.path is not None else reopen_others.reopen_pipe(opened)


def _reopen_file(opened: OpenedFile) -> int:
    # One that is gone is a difference, with which the program goes live with --force only.
    return reopen_files.reopen_file(opened, creates=True)


RULES: dict[type[OpenResource], Rule] = {
    OpenedFile: Rule(reopen_files.plan_file, _reopen_file),
    OpenedDirectory: Rule(reopen_files.plan_directory, reopen_files.reopen_directory),
    OpenedPipe: Rule(_plan_pipe, _reopen_pipe),
    OpenedSocket: Rule(reopen_sockets.plan_socket, reopen_sockets.reopen_socket),
    OpenedTerminal: Rule(reopen_files.plan_terminal, reopen_files.reopen_terminal),
    OpenedEpoll: Rule(reopen_others.plan_epoll, reopen_others.reopen_epoll),
    OpenedEventFd: Rule(reopen_others.plan_eventfd, reopen_others.reopen_eventfd),
    OpenedTimerFd: Rule(reopen_others.plan_timerfd, reopen_others.never),
    OpenedPidFd: Rule(reopen_others.plan_pidfd, reopen_others.reopen_pidfd),
    OpenedMemory: Rule(reopen_files.plan_memory, reopen_files.reopen_memory),
    OpenedOther: Rule(reopen_others.plan_other, reopen_others.never),
}


def plan_resources(resources: Resources, used: frozenset[int]) -> list[PlanRow]:
    """Return the rows of all resources; `used` are descriptors that calls of the program had. Nothing is changed."""
    written = written_files(resources)
    rows = [_plan_opened(opened, used, written, resources) for opened in resources.opened if not is_of_core(opened)]
    rows += _plan_directory(resources.cwd)
    rows += [_plan_lock(lock) for lock in resources.locks]
    rows += [_plan_child(child) for child in resources.children if not child.is_reaped]
    rows += [_plan_timer(timer) for timer in resources.timers]
    rows += _plan_signals(resources.signals)
    rows += [_plan_mapping(mapping, resources) for mapping in resources.mappings]
    rows += [_plan_semaphore(semaphore, resources) for semaphore in resources.semaphores]
    rows += [
        PlanRow("connections", Fate.LOST, f"TLS with {tls.hostname or 'a peer'}", "its keys are not recorded")
        for tls in resources.tls
    ]
    return rows


def is_compared(opened: OpenResource) -> TypeGuard[OpenedFile]:
    """Whether a resource is a file whose content is compared with what was recorded."""
    return (
        isinstance(opened, OpenedFile)
        and opened.is_regular is not False
        and not opened.is_deleted
        and not is_of_core(opened)
        and not is_standard(opened)
    )


def is_of_core(opened: OpenResource) -> bool:
    """Whether the core opens a descriptor by itself: those of SQLite, whose library holds them."""
    site = opened.handle.origin.site
    return site is not None and site.gate.startswith("_sqlite3.")


def is_standard(opened: OpenResource) -> bool:
    """Whether a descriptor is a standard stream with which the program began: it becomes our own."""
    handle = opened.handle
    return handle.origin.event == 0 and bool(handle.numbers) and _first_number(opened) < STANDARD


def _first_number(opened: OpenResource) -> int:
    """Return the number that a standard stream had at the beginning: that of the copy that the program began with."""
    firsts = [each.number for each in opened.handle.descriptors if each.origin.event == 0]
    return min(firsts or opened.handle.numbers)


def standard_number(opened: OpenResource) -> int:
    """Return which of our own streams a standard stream becomes."""
    return _first_number(opened)


def mapped_number(mapping: FileMapping, opened: OpenResource) -> int | None:
    """Return the descriptor that a mapping of an open file keeps for itself; None: it is not of this one."""
    return next((each.number for each in opened.handle.descriptors if each.origin == mapping.origin), None)


def _plan_mapping(mapping: FileMapping, resources: Resources) -> PlanRow:
    name = mapping.path if isinstance(mapping.path, str) else "a file"
    if isinstance(mapping.length, Unknown):
        return PlanRow("mappings", Fate.REFUSED, name, mapping.length.reason)
    text = f"{name}, {mapping.length:,} bytes from byte {mapping.offset:,}"
    if all(mapped_number(mapping, opened) is None for opened in resources.opened):
        return PlanRow("mappings", Fate.REFUSED, text, "the mapping has no descriptor of its own")
    return PlanRow("mappings", Fate.REOPENED, text, "stores of the program are written to the file if it is shared")


def written_files(resources: Resources) -> frozenset[str]:
    """Return the absolute paths of files that the program has open for writing.

    A call in flight may have changed them, so they are compared when the replay is due to go live.
    """
    return frozenset(
        each.absolute
        for each in resources.opened
        if isinstance(each, OpenedFile)
        and isinstance(each.absolute, str)
        and isinstance(each.handle.flags, int)
        and each.handle.flags & os.O_ACCMODE != os.O_RDONLY
    )


def _plan_opened(opened: OpenResource, used: frozenset[int], written: frozenset[str], resources: Resources) -> PlanRow:
    numbers = opened.handle.numbers
    if is_standard(opened):
        number = standard_number(opened)
        if number == 0:
            return plan_standard_input(resources.standard_input, opened)
        name = "standard output" if number == 1 else "standard error"
        return PlanRow("streams", Fate.REOPENED, name, "", numbers, opened=opened)
    if isinstance(opened, OpenedOther) and opened.handle.origin.event == 0 and used.isdisjoint(numbers):
        # Shells and build tools leave such descriptors open for each program; most never look at them.
        return PlanRow("others", Fate.LOST, f"{opened.kind}, never used", "closed", numbers)
    row = RULES[type(opened)].plan(opened)
    if is_compared(opened) and row.fate is not Fate.REFUSED and opened.absolute not in written:
        row = replace(row, differences=(*row.differences, *content_differences(opened)))
    if isinstance(opened, OpenedMemory) and row.differences and whole_maps(opened, resources):
        # Whether the program still has such a map is known when it is due to go live.
        reason = "it is gone, and is made again from the program's map; other processes do not share that"
        return replace(row, differences=(), reason=reason)
    doubts = [each.doubt for each in opened.handle.descriptors if each.doubt is not None]
    if doubts and row.fate is Fate.REOPENED:
        return PlanRow(row.kind, row.fate, row.text, doubts[0], row.numbers, row.differences, opened)
    return row


def _plan_directory(cwd: str | Unknown) -> list[PlanRow]:
    """Return the row of a working directory that cannot be entered."""
    if isinstance(cwd, Unknown):
        return []
    try:
        os.stat(os.path.join(cwd, "."))  # noqa: PTH116, PTH118 - a Path drops the dot, which asks for its entries
    except OSError as error:
        text = f"its working directory {cwd} cannot be entered: {error.strerror}"
        reason = "it runs in that of this command"
        return [PlanRow("process", Fate.LOST, text, reason, differences=(text,))]
    return []


def _plan_semaphore(semaphore: ProcessSemaphore, resources: Resources) -> PlanRow:
    """Decide a semaphore: it is made again if no other process can have changed its value."""
    site = semaphore.origin.site
    forked = [each for each in resources.children if not each.command and each.origin.event > semaphore.origin.event]
    reason = ""
    if semaphore.is_inherited or site is None or site.gate.endswith("._rebuild"):
        reason = "another process made it, and can have changed its value"
    elif not semaphore.is_unlinked:
        reason = "it has a name, by which other processes can change its value"
    elif forked:
        reason = f"process {forked[0].pid}, which was forked, can have changed its value"
    fate = Fate.REFUSED if reason else Fate.REOPENED
    return PlanRow("semaphores", fate, f"{semaphore.kind} {semaphore.name}", reason or "with the value that it had")


def _plan_lock(lock: FileLock) -> PlanRow:
    name = lock.path if isinstance(lock.path, str) else "a file"
    text = f"{lock.kind} of {name}{' (shared)' * (not lock.is_exclusive)}"
    reason = file_locks.obstacle(lock)
    return PlanRow("locks", Fate.REFUSED if reason else Fate.REOPENED, text, reason)


def _plan_child(child: ChildProcess) -> PlanRow:
    name = " ".join(child.command) or "forked"
    reason = "waiting for it reports that SIGKILL ended it"
    runs = _command_of(child.pid)
    if runs is None:
        state = "no longer exists"
    elif runs == child.command:
        state, reason = "still runs", f"{reason}; kill it unless both may run"
    else:
        state = "still runs, or its process id now belongs to another process"
        reason = f"{reason}; kill it, if it is this one, unless both may run"
    return PlanRow("children", Fate.LOST, f"process {child.pid} ({name}), which {state}", reason)


def _command_of(pid: int) -> tuple[str, ...] | None:
    """Return the command of a process; None: there is none with this number, or only what nobody has waited for."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return None
    return tuple(map(os.fsdecode, words)) or None


def _plan_signals(signals: Sequence[SignalAction]) -> list[PlanRow]:
    """Return the row of the signals for which the program has set what is done: the core does that again."""
    words = {"function": "handled", "ignore": "ignored", "default": "default action"}
    text = ", ".join(f"{each.name} ({words[each.action]})" for each in signals)
    return [PlanRow("signals", Fate.REOPENED, text)] if signals else []


def _plan_timer(timer: ProcessTimer) -> PlanRow:
    if isinstance(timer.remaining, Unknown):
        return PlanRow("timers", Fate.REFUSED, f"{timer.kind} timer", timer.remaining.reason)
    return PlanRow("timers", Fate.REOPENED, f"{timer.kind} timer, due in {timer.remaining:.3g} s")
