"""Prepare the resumption of a program: check whether it is possible, make the first plan and the new header."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import replaydbg
from replaydbg.classes import replace
from replaydbg.errors import CannotRecord, CannotResume, Corrupt, NoSuchMoment
from replaydbg.gates.table import table_of_recording
from replaydbg.log.entries.selected_events import PassedEvents
from replaydbg.log.group import group_directory
from replaydbg.log.reader import Recording
from replaydbg.record.place import reason_of
from replaydbg.replay.find_python import find_python_and_core
from replaydbg.replay.time_limits import computed_after_log
from replaydbg.resources.follow import GATES, ResourceHistory, resources_at
from replaydbg.resources.kinds import Resources
from replaydbg.resume.checks.changed_sources import changed_sources
from replaydbg.resume.past import SLACK_NS, Past, PastReader, is_noted, read_past
from replaydbg.resume.plan import Plan, RecoveryCost
from replaydbg.resume.plan_rows import PlanRow
from replaydbg.resume.power_loss.recovered_files import leftovers, unknown_ends, without_contents, write_ahead_logs
from replaydbg.resume.reopening.compare_files import with_contents
from replaydbg.resume.reopening.continued_input import with_digests
from replaydbg.resume.reopening.databases import plan_databases
from replaydbg.resume.reopening.reopen_files import with_fifos
from replaydbg.resume.reopening.rules import plan_resources
from replaydbg.store.directory import following_path, sealed_path
from replaydbg.store.process_check import writer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.events.run_facts import Header
    from replaydbg.log.json_data import HeaderData

_MEMBER = re.compile(r"[0-9]+[.]rdbg(-live)?")
_LOOKS, _EXEC = 4, 0.05
"""How often it is looked for a process, and the seconds between two looks, which an exec does not take."""
_OF_GROUPS = ("group", "process", "outputs", "branch")
"""Fields of the header that only processes of a group have."""


@contextmanager
def held(path: Path, name: str) -> Iterator[None]:
    """Hold the recording in the block: a second resumption of it is refused.

    The lock is one of the file itself (flock), which ends with the process that holds it, and leaves no file behind.
    Raises CannotResume.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield  # opening the recording says what is wrong
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotResume(name, "another `replaydbg resume` of it is running") from error
        yield
    finally:
        os.close(fd)


@contextmanager
def written_to(live: Path) -> Iterator[None]:
    """Write to the live directory of the new recording in the block. Raises CannotRecord, such as for a full disk."""
    try:
        yield
    except OSError as error:
        raise CannotRecord(str(live), reason_of(error)) from error


def first_plan(recording: Recording, name: str, at: int, *, is_member: bool = False, lost_power: bool = False) -> Plan:
    """Return the plan as far as it is known without a replay. Nothing is opened or changed.

    `at`: the event before which the program goes live; 0: after the last one. `is_member`: all processes of its group
    go live. `lost_power`: whether the machine lost power, so that files may differ from the log. Raises CannotResume,
    NoSuchMoment, and WrongPython or NotBuilt.
    """
    find_python_and_core(str(recording.path), recording.header.python)  # the replay needs them, and it comes late
    if not is_member:
        check_alone(recording, name)
    check_running(recording, name)
    plan = _plan_at(recording, name, at)
    # A group cannot be resumed after a power cut.
    may_have_lost_power = recording.header.durable and not is_member
    stopped = _why_stopped(recording) or ""
    plan = replace(plan, may_have_lost_power=may_have_lost_power, sources=changed_sources(recording), stopped=stopped)
    if not lost_power:
        return plan
    resources = without_contents(plan.resources)
    # What was not synchronised is written again, page by page, at the same places.
    databases = {each: event for each, event in plan.past.databases.items() if each in plan.past.synchronised}
    past = replace(plan.past, databases=databases)
    lost = plan_of(name, plan.event, past, resources, plan.recovery)
    differences = (*lost.differences, *unknown_ends(resources), *write_ahead_logs(resources))
    return replace(lost, differences=differences, leftovers=leftovers(resources), sources=plan.sources)


def _plan_at(recording: Recording, name: str, at: int) -> Plan:
    if at:
        past = read_past(recording, at - 1)
        _check_moment(recording, name, past, at)
        resources = _with_contents(recording, resources_at(recording, at - 1))
        return plan_of(name, at - 1, past, resources, recovery_to(recording, at - 1))
    past, resources = _read_whole(recording)
    _check_moment(recording, name, past, at)
    resources = _with_contents(recording, resources)
    return plan_of(name, past.events, past, resources, recovery_to(recording, past.events))


def _with_contents(recording: Recording, resources: Resources) -> Resources:
    return with_digests(with_contents(resources, recording.content), recording.content)


def _read_whole(recording: Recording) -> tuple[Past, Resources]:
    """Read a log to its end in one pass, which takes most of the time until a program is live."""
    if recording.log_header is None:
        raise Corrupt(str(recording.path), "it has no event log")
    reader, history = PastReader(recording, None), ResourceHistory(recording, ())
    for entry in recording.selected_events(lambda gate: gate in GATES or is_noted(gate)):
        if isinstance(entry, PassedEvents):
            reader.add_passed(entry)
            history.apply_passed(entry)
        else:
            reader.add(entry)
            history.apply(entry)
    return reader.past(), history.at(None)


def recovery_to(recording: Recording, event: int) -> RecoveryCost:
    """Return what a replay to `event` repeats. The CPU time is spread evenly over the events of the log.

    After the last one, the replay computes what the program computed until it was killed.
    """
    log, continued = recording.log_header, recording.header.raw.get("continued")
    before = continued.get("cpu_ms") if isinstance(continued, dict) else 0
    cpu_ms, events = 0, 0
    if log is not None:
        cpu_ms, events = max(log.cpu_ms - (before if isinstance(before, int) else 0), 0), log.crossings
    share = min(event / events, 1.0) if events else 1.0
    after = computed_after_log(recording) if event >= events else 0.0
    return RecoveryCost(event, int(cpu_ms * share + after * 1000), recording.size("log"))


def plan_of(name: str, event: int, past: Past, resources: Resources, recovery: RecoveryCost) -> Plan:
    """Return the plan of a program that goes live after `event`, as far as it is known without a replay."""
    resources = with_fifos(resources)
    databases = plan_databases(resources.databases, past.databases)
    rows = (*plan_resources(resources, past.used), *databases, *past.attributes)
    return Plan(
        name=name,
        event=event,
        resources=resources,
        past=past,
        rows=rows,
        differences=tuple(difference for row in rows for difference in row.differences),
        recovery=recovery,
        stood_ns=max(time.time_ns() - past.last_ns - SLACK_NS, 0),
    )


def check_alone(recording: Recording, name: str) -> None:
    """Raise CannotResume for one of several processes that were recorded together."""
    directory = group_directory(recording.path)
    is_of_several = recording.header.branch is not None
    if directory is not None:
        try:
            names = os.listdir(directory)  # noqa: PTH208 - names are enough
        except FileNotFoundError:
            names = []  # it was the only one, and was sealed meanwhile
        members = {each.split(".")[0] for each in names if _MEMBER.fullmatch(each)}
        is_of_several = is_of_several or len(members) > 1
    if is_of_several:
        reason = "it is one of several processes that were recorded together: resume the group"
        if directory is not None:
            # Named as the process was, so that it is found from the same directory.
            group = name.rpartition("/")[0] or str(directory)
            reason += f": `replaydbg resume {shlex.quote(group)}`"
        raise CannotResume(name, reason)


def check_running(recording: Recording, name: str) -> None:
    """Raise CannotResume if the program that is recorded still runs: a process has its log mapped."""
    if not recording.is_live:
        return
    try:
        process = continuing_in(recording.path) or writer_of((recording.path / "log").stat())
    except OSError:
        return  # there is none, which is found later
    if process is not None:
        raise CannotResume(name, f"its program is still running (process {process})")


def continuing_in(live: Path) -> int | None:
    """Return the process id of a program that goes on from a checkpoint in the directory `live`, or has done so.

    Until its new log is there, it has none mapped; its command line names the directory that it is prepared in.
    """
    following = following_path(live.absolute())
    # In the middle of an exec, a process has no command line; the directory is there then.
    for _ in range(_LOOKS):
        process = _process_with(os.fsencode(following))
        if process is not None or not following.is_dir():
            return process
        time.sleep(_EXEC)
    return None


def _process_with(argument: bytes) -> int | None:
    """Return the id of a process whose command line contains `argument`; None: there is none."""
    for process in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended, or is somebody else's
            if process.name.isdecimal() and argument in (process / "cmdline").read_bytes():
                return int(process.name)
    return None


def _check_moment(recording: Recording, name: str, past: Past, at: int) -> None:
    if at > past.events + 1:
        raise NoSuchMoment(str(at), f"the recording has {past.events:,} events")
    if at and at <= past.events:
        return
    how = "choose an earlier moment with --at"
    if past.has_ended or (recording.end is not None and recording.end.status >= 0 and not recording.end.reason):
        raise CannotResume(name, f"its program has ended: {how}")
    if (stopped := _why_stopped(recording)) is not None:
        raise CannotResume(name, f"logging stopped before its program ended ({stopped}): {how}")
    if recording.damage:
        raise CannotResume(
            name, f"it is damaged, so the last actions of its program are unknown: {how}", recording.damage
        )


def _why_stopped(recording: Recording) -> str | None:
    """Return why logging stopped before the program ended, as a clause; None: it did not."""
    return recording.log_header.stopped.cause if recording.log_header is not None else None


def check_refused(plan: Plan, refused: Sequence[PlanRow], *, force: bool) -> None:
    """Raise CannotResume if something can neither be brought back nor be lost."""
    final = tuple(f"{row.kind}: {row.text}: {row.reason}" for row in refused if row.is_final)
    if final:
        raise CannotResume(plan.name, "it cannot go live at this moment, not even with --force", final)
    if refused and not force:
        details = tuple(f"{row.kind}: {row.text}: {row.reason}" for row in refused)
        raise CannotResume(
            plan.name, "it has resources open that cannot be restored (--force leaves them closed)", details
        )


def check_differences(plan: Plan, differences: Sequence[str], *, force: bool) -> None:
    """Raise CannotResume if files differ from what was recorded."""
    if differences and not force:
        hint = ", or --after-power-loss after a power cut" if plan.may_have_lost_power else ""
        reason = f"files differ from what was recorded (use --force to go on anyway{hint})"
        raise CannotResume(plan.name, reason, tuple(dict.fromkeys(differences)))


def first_orders(header: Header) -> dict[str, object]:
    """Return the orders in the directory of a recording that goes on: the rows of all packages, for its checkpoints.

    A program that goes on from a checkpoint is started without them on its path.
    """
    return {"gates": [tuple(row) for row in table_of_recording(sys.path, header.raw.get("rows"))]}


def continued_header(recording: Recording, live: Path, plan: Plan) -> HeaderData:
    """Return the header of the recording that goes on in the directory `live`."""
    header = recording.header
    facts = {key: value for key, value in header.raw.items() if key not in _OF_GROUPS}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    before = facts.get("resumed", [])
    resumed = [*(before if isinstance(before, list) else ()), {"from": header.name, "event": plan.event, "when": now}]
    facts |= {"tool": replaydbg.__version__, "created": now, "name": sealed_path(live).stem, "resumed": resumed}
    return facts  # type: ignore[return-value]
