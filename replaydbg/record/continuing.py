"""Run in place of a program that goes on from a checkpoint: prepare its new recording, and become it.

The core executes this file in the process of the program (`native/guard/checkpoint.c`), with the program's interpreter,
isolated and without `site`: INTERPRETER -I -S continuing.py LIVE NEXT MAX_SIZE STOPS_ON_DEADLOCK PAGE LIBRARY. LIVE is
the live directory of the recording so far, NEXT the one of the new recording, which has the saved state; the last two
are empty outside of a group. The launcher of the first start is not needed, and may be gone.
"""

from __future__ import annotations

import os
import signal
import sys

_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


def _find_ourselves() -> None:
    """Put the directory of replaydbg last on the path, which has only the standard library."""
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100,PTH120


def _reset_process(directory: str, ignored: list[int]) -> None:
    """Undo what an exec leaves to a program: its working directory, blocked signals, handlers and timers."""
    from replaydbg.launch.process import reset_signals

    for timer in _TIMERS:
        signal.setitimer(timer, 0)
    reset_signals(ignored)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(directory)


def _become_program(words: list[str]) -> None:
    """Write the first files of the new recording, and execute the program. Raises ReplaydbgError or OSError."""
    from replaydbg.record.continued import Place, continued_start

    live, following, max_size, deadlock, page, library = words
    start = continued_start(Place(live, following, int(max_size), deadlock == "1", page, library))
    _reset_process(start.directory, start.ignored)
    os.execve(start.command[0], start.command, start.environment)


def main() -> None:
    """Become the program, or end as if it had been killed before: then its recording so far can be resumed."""
    _find_ourselves()
    try:
        _become_program(sys.argv[1:])
    except Exception as error:  # noqa: BLE001 - whatever is wrong is reported in one sentence
        # Of an error that says that nothing was started, only the reason holds.
        reason = str(getattr(error, "reason", error)).rstrip(".")
        text = f"replaydbg: the program cannot continue from its checkpoint: {reason}. Its recording can be resumed."
        os.write(2, f"{text}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)  # the first process of a container cannot kill itself


if __name__ == "__main__":
    main()
