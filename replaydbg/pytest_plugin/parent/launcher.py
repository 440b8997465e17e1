"""The launcher of a recorded pytest: records it, and runs the collector, which cuts a recording for each kept test."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from replaydbg.errors import CannotRecord, ReplaydbgError
from replaydbg.launch.closed_stderr import discard_messages
from replaydbg.launch.endings import end_like
from replaydbg.launch.interpreter import leading_options
from replaydbg.launch.process import Ended
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.record import RecordResult, record
from replaydbg.store.sessions import SESSION, begin_session

if TYPE_CHECKING:
    from replaydbg.pytest_plugin.parent.collector import Collector


def main(asked: str, words: list[str]) -> None:
    """Record the program in `words`, and end as it ends. `asked` are our orders, as JSON. Does not return."""
    gc.freeze()
    discard_messages()
    try:
        orders = shared_names.read_launcher_orders(asked)
    except ValueError as error:
        sys.exit(f"replaydbg: The launcher's orders cannot be read: {error}.")
    directory = Path(orders.directory)
    status = 2
    try:
        status = _record_in(directory, words, bisects=orders.bisects)
    except CannotRecord as error:
        _run_unrecorded(words, f"Nothing can be recorded in {str(directory)!r}: {error.reason}")
    except ReplaydbgError as error:
        sys.stderr.write(f"replaydbg: {error}\n")
    sys.exit(end_like(status))


def _run_unrecorded(words: list[str], reason: str) -> None:
    """Become the program, which has not run: a full disk must not prevent the tests. Raises OSError if that fails."""
    sys.stderr.write(f"replaydbg: {reason}. The tests run unrecorded.\n")
    sys.stderr.flush()
    os.environ[shared_names.VARIABLE] = shared_names.unrecorded(os.getpid())
    own, _ = leading_options(sys.orig_argv[1:])
    os.execv(sys.executable, [sys.executable, *own, *words])


def _record_in(directory: Path, words: list[str], *, bisects: bool) -> int:
    """Record the program; return its status. Raises CannotRecord: then it did not run."""
    try:
        work = begin_session(directory, os.getpid())
    except OSError as error:
        raise CannotRecord(str(directory), error.strerror or str(error)) from error
    found: list[Collector] = []
    try:
        return _record(words, directory, work, found, bisects=bisects)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        for each in found:
            each.retry_writes()


def _record(words: list[str], directory: Path, work: Path, found: list[Collector], *, bisects: bool) -> int:
    seed = _hash_seed()
    token = shared_names.LaunchToken(os.getpid(), seed, str(directory))
    os.environ[shared_names.VARIABLE] = token.as_text()

    def started(live: Path, sealed: Path) -> None:
        # Imported here: while the program starts, so that it does not start later.
        from replaydbg.pytest_plugin.parent.collector import Collector

        found.append(Collector(live, directory, bisects=bisects))
        found[0].start()

    def finish(live: Path, ended: Ended, seconds: float) -> RecordResult:
        for each in found:
            each.finish(ended)
        # Imported here: the start, for which the user waits, does not need it.
        from replaydbg.record.sealing import check_begun
        from replaydbg.store.clearing import clear_if_many

        if ended.status >= 0:  # else a signal ended it, and nothing else should run
            check_begun(live, ended)

        with suppress(OSError):  # the next session may clean up
            clear_if_many(directory)
        return RecordResult(live, ended.status, 0, 0, [], None, None)

    return record(words, output=work / SESSION, started=started, hash_seed=seed, finish=finish).status


def _hash_seed() -> int:
    fixed = os.environ.get("PYTHONHASHSEED", "")
    if fixed.isdecimal():
        return int(fixed)
    return int.from_bytes(os.urandom(4), "little") % 4294967294 + 1
