"""The launcher of a run that `replaydbg always` records: it takes the place of the interpreter that was started.

Whatever goes wrong before the program begins, the program runs: plainly, and one sentence on stderr gives the reason.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.cli.machine.always_start import Ring
from replaydbg.config import ALWAYS_VARIABLE, load_settings
from replaydbg.errors import CannotRecord, ReplaydbgError
from replaydbg.launch.closed_stderr import discard_messages
from replaydbg.launch.endings import end_like
from replaydbg.launch.interpreter import own_environment
from replaydbg.launch.interruption import ENDING, INTERRUPTIONS, interruptible, number_of
from replaydbg.launch.program_python import named_python
from replaydbg.launch.quiet_start import start_quietly
from replaydbg.log.group import is_recorded
from replaydbg.record import RecordResult, record
from replaydbg.record.group import NoGroups, can_name_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from replaydbg.config import Settings

_NOT_FAILURES = frozenset({0, -1, -2, -15})
"""Statuses of a run that did not fail: it ended by itself, or by SIGHUP, SIGINT or SIGTERM."""

_NOT_STARTED = " The program was not started."
"""`record` ends a reason with this sentence, and with advice."""


class StartedInterpreter(NamedTuple):
    """The interpreter as it was started."""

    executable: str
    """Its path."""
    words: list[str]
    """Its command line."""


def run(orders: str, executable: str, words: list[str]) -> NoReturn:
    """Record the run that was asked for, and end as it ends; `orders` are a `Ring` as JSON."""
    gc.disable()
    discard_messages()
    asked = StartedInterpreter(executable, words)
    begun: list[int] = []
    with interruptible():
        try:
            start_quietly(own_environment)
            ring = Ring(**json.loads(orders))
            result = _recorded(asked, ring, begun)
        except CannotRecord as error:
            if error.signal in ENDING:
                sys.exit(end_like(-error.signal))
            _run_plainly(asked, f"{error.path}: {error.reason}")  # it did not run
        except INTERRUPTIONS as interruption:
            sys.exit(end_like(-number_of(interruption)))
        except Exception as error:
            if begun:
                raise
            # The program is started all the same.
            reason = str(error) if isinstance(error, ReplaydbgError) else repr(error)
            _run_plainly(asked, reason.partition(_NOT_STARTED)[0])
    _keep(result, ring)
    gc.freeze()
    sys.exit(end_like(result.status))


def _run_plainly(asked: StartedInterpreter, reason: str) -> NoReturn:
    """Become the interpreter that was started, unrecorded."""
    with suppress(OSError):
        sys.stderr.write(f"replaydbg: this run is not recorded: {reason.rstrip('.')}.\n")
        sys.stderr.flush()
    environment = own_environment() | {ALWAYS_VARIABLE: f"plain {os.getpid()}"}
    os.execve(asked.executable, asked.words, environment)


def _recorded(asked: StartedInterpreter, ring: Ring, begun: list[int]) -> RecordResult:
    is_named = named_python(asked.words) == asked.executable
    words = asked.words if is_named else [asked.executable, *asked.words[1:]]
    settings = load_settings({"store": ring.store, "quiet": True})
    children = settings.children
    if children == "python" and not can_name_library():
        children = "fork"
    try:
        return _record(words, settings, children, ring, begun)
    except NoGroups:
        return _record(words, settings, "none", ring, begun)


def _record(words: list[str], settings: Settings, children: str, ring: Ring, begun: list[int]) -> RecordResult:
    return record(
        words,
        settings=settings,
        children=children,
        running=begun.append,
        only_failing=ring.only_failing,
        stands_in=True,
    )


def _keep(result: RecordResult, ring: Ring) -> None:
    """Let a run that passed into the ring, and remove what is too much; keep one that failed. Never raises."""
    if result.is_dropped:
        return
    try:
        # Imported here: the program has ended.
        from replaydbg.render.recording_text import listing_text
        from replaydbg.store.directory import Store
        from replaydbg.store.ring import enter, keep_failing

        store = Store(Path(ring.store))
        has_failed = result.has_failed_request or result.status not in _NOT_FAILURES
        # With this order, what is left has failed in some process, or one still runs.
        has_failed = has_failed or (ring.only_failing and not _goes_on(result))
        if has_failed:
            keep_failing(store, listing_text, result.path)
        elif not ring.only_failing:
            enter(store, listing_text, result.path, runs=ring.runs, megabytes=ring.megabytes)
        name = store.name_of(result.path).partition("/")[0] if result.path.is_absolute() else str(result.path)
        if result.problem:
            _say(f"{result.path}: {result.problem}")
        elif has_failed and sys.stderr.isatty():
            _say(f"this run failed, and its recording is kept: replaydbg debug {name}")
    except (ReplaydbgError, OSError) as error:
        _say(f"the recordings of earlier runs were not removed: {error}")


def _goes_on(result: RecordResult) -> bool:
    """Whether another process is still being recorded: when it ends, it is found out whether something has failed."""
    return result.group is not None and any(is_recorded(row) and not row.has_ended for row in result.group.processes)


def _say(sentence: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"replaydbg: {sentence.rstrip('.')}.\n")
        sys.stderr.flush()
