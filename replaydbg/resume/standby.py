"""Keep a hot standby: a replay that runs right behind a recording, and goes live when the recorded program dies.

Its memory is that of the program after each event, so the time to recovery does not depend on how long the program ran.
State machine replication calls it a warm backup that is kept by a log; see E. N. Elnozahy et al., A Survey of
Rollback-Recovery Protocols in Message-Passing Systems, ACM Computing Surveys 34 (2002), section 3.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from replaydbg.classes import NamedTuple, dataclass, replace
from replaydbg.config import Settings, load_settings
from replaydbg.errors import CannotRecord, CannotResume
from replaydbg.launch.interruption import postponed
from replaydbg.launch.process import Ended
from replaydbg.log.live_directory import remove_live
from replaydbg.log.reader import Recording, open_recording
from replaydbg.record.place import make_live_directory, reason_of, shared_store, write_start
from replaydbg.record.result import RecordResult
from replaydbg.record.sealing import seal_recording
from replaydbg.replay.find_python import find_python_and_core
from replaydbg.replay.launcher import ReplayStart, inheritable, prepare
from replaydbg.replay.unpacked_logs import UnpackedLogs, followed_logs
from replaydbg.resume.checks.changed_sources import changed_sources
from replaydbg.resume.checks.continuations import check_new, check_not_resumed
from replaydbg.resume.conversation import CoreAnswer, Due
from replaydbg.resume.followed_log import FollowedLog
from replaydbg.resume.going_live import GoingLive, Listener, ResumeChoices
from replaydbg.resume.hooks import Hooks, installed_hooks
from replaydbg.resume.images.imager import Imager, ImageWishes, StandbyBroken
from replaydbg.resume.launcher import resume
from replaydbg.resume.past import read_past
from replaydbg.resume.preparation import check_alone, continued_header, continuing_in, first_orders, held
from replaydbg.resume.replaying import core_orders, perform, removed_unless_live
from replaydbg.store.directory import sealed_path
from replaydbg.store.process_check import writer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


_INTERVAL_MS = 50
"""Between two looks at the log, when it was read to its end: what comes in as long is read at the takeover."""
_SEALING = 10.0
"""Seconds in which the recording of a program that has ended is sealed, if its recorder was not killed, too."""
_MOST_ENTRIES = 500
"""Read at once, before it is looked whether the program has ended: some 30 ms."""


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """The result of a standby whose program ended by itself."""

    status: int
    """The program's exit code, or minus the number of a signal: Ctrl-C, which Python handles before it ends by it."""


def stand_by(
    path: Path,
    *,
    name: str = "",
    choices: ResumeChoices | None = None,
    output: Path | None = None,
    settings: Settings | None = None,
    listener: Listener | None = None,
    hooks: Hooks | None = None,
    images: ImageWishes | None = None,
    begins: Callable[[int], None] | None = None,
) -> RecordResult | NotNeeded:
    """Replay right behind the recording in the live directory `path`, and take over when its program is killed.

    Returns the recording of the program that went on here, old part included. `begins` is called with the process id of
    the program that is followed, once the standby is about to begin; `images` are made of the standby (default: none);
    the other parameters are those of `resume`, and so
    are the errors. `choices.at` has no meaning here.
    """
    choices = ResumeChoices() if choices is None else choices
    listener = Listener() if listener is None else listener
    settings = load_settings() if settings is None else settings
    name = name or str(path)
    wanted = _Wanted(name, choices, output, settings, listener, hooks, images)
    is_first, is_announced = True, False

    def announce(program: int) -> None:
        nonlocal is_announced
        if begins is not None and not is_announced:
            begins(program)
        is_announced = True

    while True:
        try:
            return _stand_by_one_log(path, wanted, announce, is_first=is_first)
        except _HasContinued:
            is_first = False
            if not _is_followable(path):  # it has ended meanwhile, and was sealed
                return _resume_sealed(path, wanted)
        except StandbyBroken:  # it begins again, or goes on from the last image
            if not _is_followable(path):
                return _resume_sealed(path, wanted)
            wanted = wanted._replace(images=None)


class _Wanted(NamedTuple):
    """The wishes of the caller of `stand_by`, for each log that the program has."""

    name: str
    choices: ResumeChoices
    output: Path | None
    settings: Settings
    listener: Listener
    hooks: Hooks | None
    images: ImageWishes | None


class _HasContinued(Exception):
    """The program that is followed has gone on from a checkpoint, with a new log."""


def _is_followable(path: Path) -> bool:
    """Wait until the live directory `path` has a process that writes its log; False: there will be none."""
    while path.exists():
        # Between two looks the directory may become another one, whose predecessor is removed.
        with suppress(FileNotFoundError):
            if writer_of((path / "log").stat()) is not None:
                return True
            if continuing_in(path) is None and writer_of((path / "log").stat()) is None:
                return False
        time.sleep(_INTERVAL_MS / 1000)
    return False


def _sealed(path: Path) -> Path:
    """Wait until what was recorded in the live directory `path` is sealed; return the live directory if it is not."""
    until = time.monotonic() + _SEALING
    while path.exists() and time.monotonic() < until:
        time.sleep(_INTERVAL_MS / 1000)
    return sealed_path(path) if sealed_path(path).exists() else path


def _resume_sealed(path: Path, wanted: _Wanted) -> RecordResult | NotNeeded:
    """Resume the recording that was followed in the live directory `path`, if its program was killed."""
    with open_recording(_sealed(path)) as recording:
        if recording.end is not None and (recording.end.status >= 0 or read_past(recording, None).has_ended):
            return NotNeeded(recording.end.status)
        found = recording.path
    return resume(
        found,
        name=wanted.name,
        choices=wanted.choices,
        output=wanted.output,
        settings=wanted.settings,
        listener=wanted.listener,
        hooks=wanted.hooks,
        images=wanted.images.directory if wanted.images is not None else None,
    )


def _stand_by_one_log(
    path: Path, wanted: _Wanted, announce: Callable[[int], None], *, is_first: bool
) -> RecordResult | NotNeeded:
    """Stand by until the program has ended. Raises _HasContinued if it goes on with another log.

    So it does if it is not the first log that is followed (`is_first`), and the program has ended meanwhile.
    """
    name, choices, output, settings, listener, hooks, images = wanted
    if not is_first and not path.exists():
        raise _HasContinued
    with held(path, name), open_recording(path) as recording, ExitStack() as stack:
        if not recording.is_live:
            raise CannotResume(name, "it is no longer being written: leave out --follow")
        check_alone(recording, name)
        find_python_and_core(str(path), recording.header.python)  # as `first_plan` does
        if not choices.force:
            check_not_resumed(recording, name, settings.store)
        check_new(output)
        logs = followed_logs(path, stack)
        content = _open_content(path, name, stack)
        found = _open_program(logs["log"], name, stack)
        if found is None and (not is_first or continuing_in(path) is not None):
            raise _HasContinued
        if found is None:
            raise CannotResume(name, "its program is no longer running: leave out --follow")
        program, program_fd = found
        hooks = installed_hooks(name) if hooks is None else hooks
        live = make_live_directory(output, settings.store)
        run = _StandingBy(recording, live, (logs["log"], content), name, choices, listener, hooks, stack)
        with removed_unless_live(live, run):
            if images is not None:
                run.imager = Imager(recording, name, images, live, logs, content, listener.note, stack)
            run.program_fd = program_fd
            write_start(live, continued_header(recording, live, run.plan), first_orders(recording.header))
            announce(program)
            ended = _replay_behind(recording, run, logs, content, settings, stack)
        if not run.is_live:
            remove_live(live)
            return NotNeeded(ended.status)
        with postponed():  # as in `resume`
            seconds = time.monotonic() - run.began
            return seal_recording(live, ended, seconds, store=shared_store(output, settings.store))


def _replay_behind(
    recording: Recording,
    run: _StandingBy,
    logs: dict[str, BinaryIO],
    content: int,
    settings: Settings,
    stack: ExitStack,
) -> Ended:
    """Replay behind the program until it has ended, and let it go live here if it was killed; return how it ended."""
    page = run.imager.page if run.imager is not None else None

    def prepared(core_fd: int, _: ExitStack) -> ReplayStart:
        orders = core_orders(recording, run.live, run, settings, core_fd) | {"followed_content_fd": content}
        if page is None:
            orders["program_fd"] = run.program_fd
            return _prepare(recording, logs, orders, stack)
        orders["standby_page_fd"] = inheritable(stack, page.file.fileno())
        return _prepare(recording, logs, orders, stack, page.report)

    ended, _ = perform(
        recording,
        run.live,
        run,
        prepared,
        stack,
        idle=0.0,  # the program that is followed may wait for as long as it wants
        may_end=run.program_has_ended,
        listener=page.listener if page is not None else None,
    )
    return ended


class _StandingBy(GoingLive):
    """A resumption whose plan is made when it is due: it is that of the log's end, which nobody knows before."""

    def __init__(
        self,
        recording: Recording,
        live: Path,
        files: tuple[BinaryIO, int],
        name: str,
        choices: ResumeChoices,
        listener: Listener,
        hooks: Hooks,
        stack: ExitStack,
    ) -> None:
        """`recording` is followed, of which `files` are the log and the content; `live` is where it goes on."""
        self._log = FollowedLog(recording, *files)
        super().__init__(self._log.plan(name), choices, listener, hooks, stack)
        self.live = live
        self.began = time.monotonic()
        """When the program went live; before that: when the standby began."""
        self._followed = recording
        self.imager: Imager | None = None
        """Makes images of the standby, if these are wanted."""
        self.program_fd = -1
        """Readable once the program has ended."""
        self._core = select.poll()  # select() knows no descriptors from 1,024 on
        """Knows when there is something to read from the core, or it has ended."""

    def wait(self, connection: socket.socket, pid: int) -> socket.socket:
        """Read the log as it grows: at the takeover the time for all of it would be missing."""
        self._core.register(connection, select.POLLIN)
        is_behind = True
        try:
            if self.imager is not None:  # the core has no connection yet whose end would show its end
                process = os.pidfd_open(pid)
                self._stack.callback(os.close, process)
                self._core.register(process, select.POLLIN)
            while not self._core.poll(0 if is_behind else _INTERVAL_MS):
                is_behind = self._log.read(_MOST_ENTRIES)
                self._check_log()
                if not is_behind:
                    check_alone(self._followed, self.plan.name)  # nobody could take over
                self._tend_images(pid)
        except BaseException:
            os.kill(pid, signal.SIGKILL)  # it would follow until the program has ended, and only then find us gone
            raise
        return connection if self.imager is None else self._accept(connection, pid)

    def _accept(self, listener: socket.socket, pid: int) -> socket.socket:
        assert self.imager is not None
        connection = self.imager.page.accept(pid)
        self._core.unregister(listener)
        self._core.register(connection, select.POLLIN)
        return connection

    def _tend_images(self, pid: int) -> None:
        """Make an image if one is due, or let the core know that the program has ended."""
        if self.imager is None:
            return
        program = select.poll()
        program.register(self.program_fd, select.POLLIN)
        if program.poll(0):
            self.imager.page.end_log()
        else:
            self.imager.save_if_due(pid)

    def answer(self, due: Due, answer: CoreAnswer, pid: int) -> None:
        """Plan with the log of the program, which has ended, and open what it had open."""
        self._check_log()
        check_alone(self._followed, self.plan.name)
        while self._log.read(_MOST_ENTRIES):
            pass
        self.learn(replace(self._log.plan(self.plan.name), sources=changed_sources(self._followed)))
        if self.plan.event != due.event:
            raise CannotResume(self.plan.name, f"its log can be read to event {self.plan.event:,} only")
        _replace_header(self._followed, self.live, self)
        if not due.is_end:
            self.open_all()
            self.enter_by_core()
        super().answer(due, answer, pid)
        self.began = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Wait, unless the replay ends: a signal to us ends it, and nothing else."""
        if self._core.poll(seconds * 1000):
            raise ConnectionError("the replay has ended")

    def program_has_ended(self) -> bool:
        """Whether the program ended by itself: its log has the record of that, which is read to its end."""
        while self._log.read(_MOST_ENTRIES):
            pass
        return self._log.has_ended()

    def _check_log(self) -> None:
        """Raise _HasContinued if the program has another log by now."""
        if self._log.has_continued():
            raise _HasContinued


def _replace_header(followed: Recording, live: Path, run: GoingLive) -> None:
    partial = live / "header.json.partial"
    try:
        partial.write_text(json.dumps(continued_header(followed, live, run.plan)), encoding="utf-8")
        partial.replace(live / "header.json")
    except OSError as error:
        raise CannotRecord(str(live), reason_of(error)) from error


def _open_content(path: Path, name: str, stack: ExitStack) -> int:
    """Open the copies of large files that the program in the live directory `path` reads.

    The file is made if it is missing, as the core does at the first copy: should the program be killed when the replay
    is still far behind, the recording is sealed, and the file gone, before the replay comes to where it is needed.
    """
    try:
        fd = os.open(path / "content", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotResume(name, f"its copies of large files cannot be read: {error.strerror}") from error
    stack.callback(os.close, fd)
    return inheritable(stack, fd)


def _open_program(log: BinaryIO, name: str, stack: ExitStack) -> tuple[int, int] | None:
    """Return the process id of the program that writes the log, and a descriptor that is readable once it has ended.

    None: no process writes it. Raises CannotResume.
    """
    status = os.fstat(log.fileno())
    pid = writer_of(status)
    if pid is None:
        return None
    try:
        fd = os.pidfd_open(pid)
    except OSError as error:  # it has just ended
        raise CannotResume(name, f"its program cannot be watched: {error.strerror}") from error
    stack.callback(os.close, fd)
    if writer_of(status) != pid:  # it has ended, and another process may have its number by now
        return None
    return pid, inheritable(stack, fd)


def _prepare(
    recording: Recording,
    logs: dict[str, BinaryIO],
    orders: Mapping[str, object],
    stack: ExitStack,
    report: BinaryIO | None = None,
) -> ReplayStart:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    stack.callback(os.close, null)
    parts = UnpackedLogs(logs)
    return prepare(
        recording, stack, orders, stdout=null, stderr=null, follows=True, parts=parts, goes_live=True, report=report
    )
