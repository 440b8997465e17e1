"""The launcher of a recorded pytest: records it, and runs the collector, which cuts a recording for each kept test."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import CannotRecord, ReplaydbgError
from replaydbg.launch.closed_stderr import discard_messages
from replaydbg.launch.endings import end_like
from replaydbg.launch.interpreter import leading_options
from replaydbg.launch.process import Ended
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.record import RecordResult, record
from replaydbg.store.sessions import SESSION, begin_session

TYPE_CHECKING = False
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
        status = _record_in(orders, words)
    except _Misguessed:
        _become(words, shared_names.misguessed(os.getpid()))
    except CannotRecord as error:
        _run_unrecorded(words, f"Nothing can be recorded in {str(directory)!r}: {error.reason}")
    except ReplaydbgError as error:
        sys.stderr.write(f"replaydbg: {error}\n")
    sys.exit(end_like(status))


def _run_unrecorded(words: list[str], reason: str) -> None:
    """Become the program, which has not run: a full disk must not prevent the tests. Raises OSError if that fails."""
    sys.stderr.write(f"replaydbg: {reason}. The tests run unrecorded.\n")
    sys.stderr.flush()
    _become(words, shared_names.unrecorded(os.getpid()))


def _become(words: list[str], reason: str) -> None:
    os.environ[shared_names.VARIABLE] = reason
    own, _ = leading_options(sys.orig_argv[1:])
    os.execv(sys.executable, [sys.executable, *own, *words])


class _Misguessed(Exception):
    """Our orders were a wrong guess: pytest has other options, and ended before it did anything."""


def _record_in(orders: shared_names.LauncherOrders, words: list[str]) -> int:
    """Record the program; return its status. Raises CannotRecord: then it did not run; and _Misguessed."""
    directory = Path(orders.directory)
    was_there = directory.exists()
    try:
        work = begin_session(directory, os.getpid())
    except OSError as error:
        raise CannotRecord(str(directory), error.strerror or str(error)) from error
    found: list[Collector] = []
    try:
        status = _record(words, orders, work, found)
    finally:
        _remove(work)
        for each in found:
            each.retry_writes()
    if orders.is_guess and any(each.is_misguessed for each in found):
        if not was_there:
            with suppress(OSError):  # another session may have begun in it
                directory.rmdir()
        raise _Misguessed
    return status


def _record(words: list[str], orders: shared_names.LauncherOrders, work: Path, found: list[Collector]) -> int:
    seed = _hash_seed()
    directory = Path(orders.directory)
    guess = shared_names.GUESSES[orders.bisects, orders.pages] if orders.is_guess else ""
    token = shared_names.LaunchToken(os.getpid(), seed, str(directory), guess)
    os.environ[shared_names.VARIABLE] = token.as_text()

    def started(live: Path, sealed: Path) -> None:
        # Imported here: while the program starts, so that it does not start later.
        from replaydbg.pytest_plugin.parent.collector import Collector

        found.append(Collector(live, directory, work, bisects=orders.bisects, pages=orders.pages))
        found[0].start()

    def finish(live: Path, ended: Ended, seconds: float) -> RecordResult:
        for each in found:
            each.finish(ended)
        # Imported here: the start, for which the user waits, does not need it.
        from replaydbg.record.sealing import check_begun, is_removed
        from replaydbg.store.clearing import clear_if_many

        if is_removed(live):
            sys.stderr.write(f"replaydbg: {str(directory)!r} was removed while the tests ran, and their recordings.\n")
        elif ended.status >= 0:  # else a signal ended it, and nothing else should run
            check_begun(live, ended)

        with suppress(OSError):  # the next session may clean up
            clear_if_many(directory)
        return RecordResult(live, ended.status, 0, 0, [], None, None)

    return record(
        words,
        output=work / SESSION,
        started=started,
        hash_seed=seed,
        finish=finish,
        children=orders.children,
        blocks=directory,
    ).status


def _remove(directory: Path) -> None:
    """Remove our own files. `shutil` would take two milliseconds of each session to import."""
    for folder, folders, files in os.walk(directory, topdown=False):
        for remove, names in ((os.unlink, files), (os.rmdir, folders)):
            for name in names:
                with suppress(OSError):
                    remove(os.path.join(folder, name))  # noqa: PTH118
    with suppress(OSError):
        directory.rmdir()


def _hash_seed() -> int:
    fixed = os.environ.get("PYTHONHASHSEED", "")
    if fixed.isdecimal():
        return int(fixed)
    return int.from_bytes(os.urandom(4), "little") % 4294967294 + 1
