"""Record a command until it fails and until it passes, several times at once, and keep one recording of each."""

from __future__ import annotations

import enum
import os
import re
import select
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from replaydbg.config import Settings
from replaydbg.errors import CannotHunt, CannotRecord, ReplaydbgError, UsageError
from replaydbg.hunt.capture import Outside, discard
from replaydbg.hunt.rate import interval
from replaydbg.hunt.worker import Finished, RunInProgress, RunStarter, WantedRecordings, start_here, why_failed
from replaydbg.launch.interruption import INTERRUPTIONS, number_of, postponed
from replaydbg.launch.program_python import split_command
from replaydbg.log.edit.sharing import write_shared
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.store_blocks import common_in
from replaydbg.record.target import find_target
from replaydbg.store.clearing import clear_store
from replaydbg.store.directory import LIVE, SEALED, Store

MOST_MORE = 2
"""Number of further failing runs that are kept, if they occur before the hunt is over."""


class Until(enum.Enum):
    """The goal of a hunt."""

    FAIL = "fail"
    """A run that fails."""
    PASS = "pass"
    """A run that passes."""
    BOTH = "both"
    """One of each."""


@dataclass(frozen=True, slots=True)
class HuntRequest:
    """The command and the options of a hunt."""

    command: list[str]
    """The command line, as for `record`."""
    runs: int = 100
    """Maximum number of runs."""
    jobs: int = 1
    """Number of runs at once."""
    is_chaotic: bool = False
    """Whether threads get short, uneven slices, each run with a seed of its own."""
    until: Until = Until.BOTH
    """When to stop."""
    failures: int = 1
    """Number of failing runs after which it stops."""
    fails: str = ""
    """A pattern: a run whose output matches it has failed, whatever its exit code."""
    timeout: float | None = None
    """Seconds after which a run is ended, and has failed; None: no limit."""
    directory: Path | None = None
    """The directory of the two recordings; None: the store."""


@dataclass(frozen=True, slots=True)
class HuntRun:
    """One run."""

    number: int
    """From 1, in the order in which they were started."""
    is_failure: bool
    """Whether it failed."""
    why: str
    """Why it counts as failed: `exit code 1`, `killed by SIGSEGV` ...; empty if it passed."""
    outside: Outside
    """Its exit code and what it wrote."""
    path: Path
    """Its recording, if it is kept."""
    events: int
    """Number of crossings in the recording."""
    chaos: int | None
    """The seed of its slices."""


@dataclass(frozen=True, slots=True)
class Caught:
    """The result of a hunt."""

    runs: int
    """Number of completed runs."""
    failures: int
    """Number of failures among them."""
    failed: HuntRun | None
    """A failing run, with its recording."""
    passed: HuntRun | None
    """A passing run, with its recording."""
    more: tuple[HuntRun, ...] = ()
    """Other failing runs, with their recordings: a cause has to explain these as well."""
    interrupted_by: int = 0
    """The signal that ended the hunt; 0: none did."""

    @property
    def rate(self) -> tuple[float, float]:
        """The bounds of the failure rate, with a confidence of 95 %."""
        return interval(self.failures, self.runs)

    def has(self, until: Until, failures: int = 1) -> bool:
        """Whether the goal is reached, with this number of failures if failures are wanted."""
        has_failed = self.failed is not None and self.failures >= failures
        return (until is Until.PASS or has_failed) and (until is Until.FAIL or self.passed is not None)


def hunt(
    wanted: HuntRequest,
    settings: Settings,
    *,
    seen: Callable[[HuntRun], None] = lambda run: None,
    start: RunStarter = start_here,
) -> Caught:
    """Record `wanted.command` until there is what is wanted, and keep that; `seen` is called with each run.

    `start` starts each run (default: on this machine).

    Ctrl-C ends it with the runs so far. Raises CannotHunt if the command cannot be started, never fails or always does
    (one recording is kept then, too), UsageError for an invalid pattern or number.
    """
    pattern = _checked(wanted)
    hunter = _Hunter(wanted, settings, pattern, seen, start)
    try:
        caught = hunter.run()
    finally:
        hunter.close()
    if not caught.interrupted_by and not caught.has(wanted.until):
        # There is nothing that they could help to explain.
        hunter.place.forget(caught.more)
        raise CannotHunt(_why_not(caught), caught.runs, caught.failures)
    return caught


def _checked(wanted: HuntRequest) -> re.Pattern[bytes] | None:
    if wanted.runs < 1 or wanted.jobs < 1:
        raise UsageError("--runs and --jobs must be at least 1.")
    if wanted.failures < 1 or wanted.failures > wanted.runs:
        raise UsageError(f"--failures must be between 1 and the number of runs (got {wanted.failures}).")
    if wanted.timeout is not None and not wanted.timeout > 0:
        raise UsageError("--timeout must be more than 0 seconds.")
    if not wanted.command:
        raise UsageError("Nothing to run: name a script, -m module, -c code, or a console script after --.")
    try:
        find_target(split_command(wanted.command, follows_activated=True).words)
    except UsageError as error:
        raise CannotHunt(f"The command cannot be started. {error}", 0, 0) from error
    if not wanted.fails:
        return None
    try:
        return re.compile(os.fsencode(wanted.fails), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"--fails {wanted.fails!r} is not a valid regular expression: {error}.") from error


def _why_not(caught: Caught) -> str:
    low, high = caught.rate
    times = f"{caught.runs:,} run{'s' if caught.runs != 1 else ''}"
    if caught.failures:
        kept = f" {caught.failed.path} is one of them." if caught.failed is not None else ""
        rate = f"failure rate probably at least {low:.1%}"
        return f"Every one of {times} failed ({rate}): there is no passing run to compare with.{kept}"
    kept = f" {caught.passed.path} is one of them." if caught.passed is not None else ""
    rate = f"failure rate probably at most {high:.1%}"
    return f"None of {times} failed ({rate}): try a larger -n, --chaos, or --fails.{kept}"


class _Hunter:
    def __init__(
        self,
        wanted: HuntRequest,
        settings: Settings,
        pattern: re.Pattern[bytes] | None,
        seen: Callable[[HuntRun], None],
        start: RunStarter,
    ) -> None:
        self.wanted, self.settings, self.pattern, self.seen, self.start = wanted, settings, pattern, seen, start
        self.place = _Place.make(wanted.directory, settings.store)
        self.working: dict[RunInProgress, tuple[int, int | None]] = {}
        self.begun = self.ended = self.failures = 0
        self.failed: HuntRun | None = None
        self.passed: HuntRun | None = None
        self.more: list[HuntRun] = []

    def run(self) -> Caught:
        try:
            while not self.caught.has(self.wanted.until, self.wanted.failures):
                while len(self.working) < self.wanted.jobs and self.begun < self.wanted.runs:
                    self._begin()
                if not self.working:
                    break
                self._wait()
        except INTERRUPTIONS as interruption:
            return replace(self.caught, interrupted_by=number_of(interruption))
        return self.caught

    @property
    def caught(self) -> Caught:
        return Caught(self.ended, self.failures, self.failed, self.passed, tuple(self.more))

    def close(self) -> None:
        for worker in self.working:
            worker.kill()
        self.place.close()

    def _begin(self) -> None:
        self.begun += 1
        chaos = self.settings.chaos
        if self.wanted.is_chaotic:
            chaos = int.from_bytes(os.urandom(4), "little") >> 1
        # Nobody would be there to end a run that hangs.
        settings = self.settings._replace(chaos=chaos, on_deadlock="stop")
        path = self.place.path(f"run-{self.begun}")
        with postponed():
            worker = self.start(
                self.wanted.command, path, settings, timeout=self.wanted.timeout, keeping=self._keeping()
            )
            self.working[worker] = (self.begun, chaos)

    def _keeping(self) -> WantedRecordings:
        is_more_wanted = self.failed is None or len(self.more) < max(MOST_MORE, self.wanted.failures - 1)
        return WantedRecordings(failed=is_more_wanted, passed=self.passed is None)

    def _wait(self) -> None:
        poll = select.poll()
        for worker in self.working:
            poll.register(worker.fd, select.POLLIN)
        left = [each for each in (worker.seconds_left for worker in self.working) if each is not None]
        ready = {fd for fd, _ in poll.poll(min(left) * 1000 + 1 if left else None)}
        for worker in [each for each in self.working if each.fd in ready]:
            number, chaos = self.working.pop(worker)
            self._ended(number, chaos, worker.finish())
        for worker in self.working:
            worker.remind()

    def _ended(self, number: int, chaos: int | None, finished: Finished) -> None:
        if finished.error:
            if self.failed is None and self.passed is None:
                raise CannotHunt(f"The command cannot be recorded. {finished.error}", self.ended, self.failures)
            raise CannotRecord(str(finished.path), finished.error)
        why = why_failed(finished, self.pattern, self.wanted.timeout)
        kind = "fail" if why else "pass"
        is_first = (self.failed if why else self.passed) is None
        is_more = bool(why) and not is_first and len(self.more) < max(MOST_MORE, self.wanted.failures - 1)
        name = kind if is_first else f"{kind}-{len(self.more) + 2}"
        with postponed():  # an interrupt keeps what there is, under its name
            path = self.place.keep(finished.path, name) if is_first or is_more else finished.path
        run = HuntRun(number, bool(why), why, finished.outside, path, finished.events, chaos)
        self.ended += 1
        self.failures += run.is_failure
        if is_more:
            self.more.append(run)
        elif not is_first:
            discard(finished.path)
        elif why:
            self.failed = run
        else:
            self.passed = run
        self.seen(run)


@dataclass(frozen=True, slots=True)
class _Place:
    """The directory of a hunt's recordings: visible from the start, so that none is lost if the hunt is killed."""

    directory: Path
    prefix: str
    """The prefix of their names."""
    reserved: Path | None
    """A file that keeps another hunt from using the same names; None: this is no store."""

    @classmethod
    def make(cls, directory: Path | None, store: Path) -> _Place:
        where = store.absolute() if directory is None else directory.absolute()
        try:
            where.mkdir(parents=True, exist_ok=True, mode=0o700)
            if directory is not None:
                return cls(where, "", None)
            taken = [re.match(r"hunt-(\d{1,17})-", each.name) for each in Store(where).list()]
            number = max((int(match[1]) for match in taken if match), default=0)
            while True:
                number += 1
                reserved = where / f".hunt-{number}"
                with suppress(FileExistsError):
                    reserved.mkdir()
                    return cls(where, f"hunt-{number}-", reserved)
        except OSError as error:
            raise CannotRecord(str(where), error.strerror or str(error)) from error

    def path(self, name: str) -> Path:
        return self.directory / f"{self.prefix}{name}{SEALED}"

    def keep(self, path: Path, name: str) -> Path:
        """Give a recording its final name; in the store it shares blocks with the others from now on."""
        target = self.path(name)
        if path.name.endswith(LIVE):  # it could not be sealed
            target = target.with_name(target.name.removesuffix(SEALED) + LIVE)
            discard(target)
        elif self.reserved is not None and _is_shared(path, target, self.directory):
            path.unlink()
            return target
        return path.rename(target)

    def forget(self, runs: Iterable[HuntRun]) -> None:
        """Remove recordings that were kept."""
        paths = [each.path for each in runs]
        for path in paths:
            discard(path)
        if paths and self.reserved is not None:
            clear_store(Store(self.directory))

    def close(self) -> None:
        if self.reserved is not None:
            self.reserved.rmdir()


def _is_shared(path: Path, target: Path, store: Path) -> bool:
    """Write a recording to `target` so that it shares blocks; false: that failed, and it stays one file."""
    try:
        with common_in(store) as common, open_recording(path, with_secrets=False) as recording:
            assert common is not None
            write_shared(recording, target, common)
    except (ReplaydbgError, OSError):  # the disk may be full
        return False
    return True
