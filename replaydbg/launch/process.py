"""Run the program's process: start it, forward signals to it, and return how it ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from replaydbg.classes import NamedTuple
from replaydbg.launch.interruption import ENDING, raise_for

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals to us that are meant for the program."""

_TYPED = (signal.SIGINT, signal.SIGQUIT)
r"""Ctrl-C and Ctrl-\: a terminal sends them to the program as well as to us, a supervisor perhaps only to us."""

_CONTINUING = 0.02
"""Seconds until all processes of a group that is being continued run again; a process still stopped then stays
stopped.
"""


TYPE_CHECKING = False  # the same as typing's
if TYPE_CHECKING:
    from replaydbg.launch.idle import IdleWatch


class Ended(NamedTuple):
    """How a process ended."""

    status: int
    """Its exit code, or minus the number of the signal that ended it."""
    cpu_seconds: float
    """CPU time of the process and of its children that it waited for."""
    waited: float = 0.0
    """Seconds that it waited without using the processor, if it was ended for that."""


def run_process(
    argv: list[str],
    env: dict[str, str],
    *,
    fds: Sequence[int | None] = (None, None, None),
    ignored: Sequence[int] = (),
    meanwhile: Callable[[int], None] | None = None,
    handled: Callable[[], int] | None = None,
    start: Callable[[], int] | None = None,
) -> Ended:
    """Run `argv`; `fds` become its standard streams (None: inherit, -1: closed); `ignored` signals stay so in it.

    `meanwhile` is called with its process id once the process runs; it must not raise. `handled` returns how many
    signals the program has handled by itself so far; without it that number is unknown. `start` starts the process in
    another way, and returns its process id.
    """
    forward = _Forwarder(handled)
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    # Before the fork: a Ctrl-C must not end us and leave the program behind.
    before |= {number: signal.signal(number, forward.unless_typed) for number in _TYPED}
    try:
        pid = forward.pid = start_process(argv, env, fds=fds, ignored=ignored) if start is None else start()
        if meanwhile is not None:
            meanwhile(pid)
        return _wait(pid)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_replay(
    argv: list[str],
    env: dict[str, str],
    *,
    fds: Sequence[int | None] = (None, None, None),
    ignored: Sequence[int] = (),
    outputs: Sequence[int] = (),
    idle: float = 0.0,
) -> Ended:
    """Run `argv`, a replay; `fds` and `ignored` are as for `run_process`.

    If it waits for more than `idle` seconds without using the processor, it is ended (0: never). It may wait for the
    reader of one of `outputs`, the descriptors of its output.

    A signal that requests our end ends the replay first, whether or not a terminal has sent it to both, and is handled
    then as if it had just arrived. If its handler returns, this raises KeyboardInterrupt or Terminated: the status of
    the replay is meaningless.
    """
    ender = _Ender()
    before = {number: signal.signal(number, ender) for number in ENDING if signal.getsignal(number) != signal.SIG_IGN}
    try:
        ender.started(start_process(argv, env, fds=fds, ignored=ignored))
        with _watched(ender.pid, idle, outputs) as watch:
            ended = _wait(ender.pid)
        if watch is not None and watch.has_ended_it:
            ended = ended._replace(waited=idle)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    # The kernel sends a signal to all of a group before the first of them can end by it: it has arrived.
    if ender.number:
        signal.raise_signal(ender.number)
        raise_for(ender.number)  # its handler continues from here
    return ended


@contextmanager
def ended_by_signals(pid: int, idle: float = 0.0) -> Iterator[Callable[[], int]]:
    """In the block, a signal that requests our end kills the process `pid`.

    So does waiting for more than `idle` seconds without using the processor (0: never). Yields a function that returns
    the first signal, 0 if none came; the caller handles it. It is used within `run_process`, whose handlers come back.
    """
    ender = _Ender()
    before = {number: signal.signal(number, ender) for number in ENDING}
    try:
        # One that came since the start was passed on to a replay, which handles none.
        ender.number = ender.number or next(filter(None, map(_first_received, before.values())), 0)
        ender.started(pid)
        with _watched(pid, idle, ()):
            yield lambda: ender.number
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _watched(pid: int, seconds: float, outputs: Sequence[int]) -> Iterator[IdleWatch | None]:
    """Watch a process in the block, in a thread: the main thread waits for it, and handles signals."""
    # Imported here: recording, which needs neither, imports this module before the program starts. Not threading, whose
    # import would take a millisecond before every replay.
    import _thread

    from replaydbg.launch.idle import INTERVAL, IdleWatch, can_watch

    if not seconds or not can_watch():
        yield None
        return
    watch = IdleWatch(pid, seconds=seconds, outputs=outputs)
    runs, has_ended = _thread.allocate_lock(), _thread.allocate_lock()

    def look() -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while not runs.acquire(timeout=INTERVAL):
                watch.look()
        finally:
            has_ended.release()

    runs.acquire()
    has_ended.acquire()
    _thread.start_new_thread(look, ())
    try:
        yield watch
    finally:
        runs.release()
        has_ended.acquire()
        watch.close()


class _Ender:
    """Kills the replay when a signal requests our end; further signals are ignored."""

    def __init__(self) -> None:
        self.pid = self.number = 0

    def started(self, pid: int) -> None:
        """Record that the replay runs; a signal may have arrived before."""
        self.pid = pid
        if self.number:
            self._kill()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number
        if self.pid:
            self._kill()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def start_process(
    argv: list[str], env: dict[str, str], *, fds: Sequence[int | None] = (None, None, None), ignored: Sequence[int] = ()
) -> int:
    """Start `argv` and return its process id; `fds` and `ignored` are as for `run_process`."""
    pid = os.fork()
    if pid == 0:
        become(argv, env, fds, ignored)
    return pid


class _Forwarder:
    """Forwards a signal to the program, unless it was sent to the whole group and the program has received it already.

    A signal does not show how many processes it was sent to. A program that handled one at this moment received it from
    the same sender; a second one would hit it while it is exiting.
    """

    STEPS, STEP = 10, 0.005
    """The program has 50 ms: it handles a signal at its next instruction, or is inside C code and gets it twice."""

    def __init__(self, handled: Callable[[], int] | None) -> None:
        self.handled = handled or (lambda: 0)
        self.known = 0
        self.pid = 0
        self.first = 0
        """The first signal that came; 0: none."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.first = self.first or number
        if not self.pid or self._is_handled_by_itself():
            return
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return  # it ended by the same signal, and has been waited for
        time.sleep(self.STEP)
        self.known = max(self.known, self.handled())

    def _is_handled_by_itself(self) -> bool:
        # The last check is right before the signal is forwarded: on a busy machine all of the time may pass at once.
        for step in range(self.STEPS + 1):
            if step:
                time.sleep(self.STEP)
            count = self.handled()
            if count > self.known:
                self.known = count
                return True
        return False

    def unless_typed(self, number: int, frame: FrameType | None) -> None:
        """Forward it, too, unless we receive a terminal's keys: then the program has certainly received it."""
        self.first = self.first or number
        if not _is_in_foreground():
            self(number, frame)


def _first_received(handler: object) -> int:
    """Return the first signal that a handler of `run_process` received; 0 for another handler."""
    forwarder = getattr(handler, "__self__", handler)
    return forwarder.first if isinstance(forwarder, _Forwarder) else 0


def _is_in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False  # there is no terminal
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def become(argv: list[str], env: dict[str, str], fds: Sequence[int | None], ignored: Sequence[int]) -> None:
    """Turn this process, which was just forked, into `argv`; never returns. `fds`, `ignored`: as for `run_process`."""
    try:
        for target, fd in enumerate(fds):
            if fd == -1:
                os.close(target)
            elif fd is not None:
                os.dup2(fd, target, inheritable=True)
        reset_signals(ignored)
        os.execve(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"replaydbg: {argv[0]} cannot be started: {error.strerror}\n".encode())
    finally:
        os._exit(126)


def reset_signals(ignored: Sequence[int]) -> None:
    """Set all signals to what a program that is started finds: `ignored`, or the default action."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)


def _import_resource() -> None:
    """Import the module that os.wait4() imports: a module of that name in PYTHONPATH is the program's."""
    every = sys.path[:]
    given = set()
    for each in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        with suppress(OSError):  # the working directory may be gone
            given.add(os.path.abspath(each))  # noqa: PTH100
    sys.path[:] = [each for each in every if each not in given]
    try:
        import resource  # noqa: F401
    finally:
        sys.path[:] = every


def _has_job_control() -> bool:
    """Whether our process group is not orphaned, in the sense of POSIX: a shell continues it if it is stopped."""
    parent = os.getppid()
    try:
        return os.getsid(parent) == os.getsid(0) and os.getpgid(parent) != os.getpgrp()
    except OSError:  # it has just ended, or is outside of our PID namespace
        return False


def _wait(pid: int) -> Ended:
    _import_resource()
    while True:
        _, status, usage = os.wait4(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return Ended(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
        # Ctrl-Z stops the program, and the shell waits for us. But if we were stopped with it, and were continued a
        # moment before it, nobody would continue us again. Nor would anybody without a shell.
        if not _has_job_control():
            continue
        time.sleep(_CONTINUING)
        if os.waitid(os.P_PID, pid, os.WCONTINUED | os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(pid, signal.SIGCONT)
