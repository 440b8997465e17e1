"""Look at one commit: check it out in a worktree, build it, run the program or replay the recording, and judge."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from replaydbg.commits import start
from replaydbg.commits.depends import Dependencies, of_replay, of_run
from replaydbg.commits.orders import (
    DOES_NOT_START,
    Order,
    OrderFailed,
    RecordOrder,
    ReplayedCode,
    ReplayOrder,
    read_answer,
    write_order,
)
from replaydbg.commits.question import CommitLook, Question
from replaydbg.commits.recorded_paths import moved, write_missing
from replaydbg.commits.repository import GitFailed
from replaydbg.commits.surroundings import Surroundings
from replaydbg.commits.worktree_commands import TimedOut, last_words, run_command
from replaydbg.commits.worktrees import Worktrees
from replaydbg.errors import Inconclusive, ReplaydbgError
from replaydbg.events.verdict import Verdict
from replaydbg.log.reader import open_recording

CANNOT_TEST = 125
"""The exit code with which a program reports that the commit cannot be tested; as in git."""

START_COMMAND = (sys.executable, str(Path(start.__file__)))
"""The script that runs in a worktree, see `start`."""
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]*)(: |$)")


@dataclass(frozen=True, slots=True)
class _Ran:
    """The result of one run or replay."""

    verdict: Verdict
    why: str
    liberties: tuple[str, ...] = ()
    failure: str = ""
    shift: str = ""
    clock_shift: str = ""


class CommitLooker(Protocol):
    """Looks at commits; usable from several threads."""

    expected: str
    """The failure that is searched for; another one counts as inconclusive. Empty: every failure counts."""
    end: str
    """The failure of the bad end: a commit that does not even start, and fails differently, is not bad."""
    has_met_ours: bool
    """Whether any program has imported a file of the repository."""

    def look(self, commit: str, *, passes: int, cancel: threading.Event, is_measured: bool = False) -> CommitLook:
        """Return the result at `commit`: bad if a run fails, good after `passes` runs that do not.

        With `is_measured` it uses the maximum number of runs, and counts the failures. Raises GivenUp when `cancel` is
        set, and Inconclusive if the program does not run the commit's code.
        """


LookersElsewhere = Callable[[Question, Surroundings, Path, tuple[str, ...]], CommitLooker]
"""Makes a looker that uses other machines; the arguments are those of Looker, and the commits that it may look at."""


class Looker:
    """Looks at commits in worktrees of this machine: a CommitLooker."""

    def __init__(
        self,
        question: Question,
        worktrees: Worktrees,
        around: Surroundings,
        recordings: Path,
        *,
        recorded: tuple[Path, Path] | None = None,
    ) -> None:
        """Keep recordings in the directory `recordings`.

        `recorded` is a recording, and where the repository was at that time: its sources that are in no commit, such as
        the script, are written into the worktrees.
        """
        self._recorded = recorded
        self._question = question
        self._worktrees = worktrees
        self._around = around
        self._recordings = recordings
        self.expected = ""
        self.end = ""
        self.rate: tuple[int, int] | None = None
        """Number of failures of the recorded code with other random numbers, and number of these replays;

        None: not measured.
        """
        self.has_met_ours = False

    def look(self, commit: str, *, passes: int, cancel: threading.Event, is_measured: bool = False) -> CommitLook:
        """Return the result at `commit`, see CommitLooker."""
        began = time.monotonic()
        began_ns = time.time_ns()
        try:
            worktree = self._worktrees.take(commit)
        except GitFailed as error:
            return CommitLook(
                commit, Verdict.UNDECIDED, f"git cannot check it out: {error}", time.monotonic() - began, runs=0
            )
        try:
            with tempfile.TemporaryDirectory(dir=self._worktrees.directory) as scratch:
                found = self._look(commit, worktree, Path(scratch), passes, cancel, is_measured, began_ns)
        finally:
            self._worktrees.give_back(worktree)
        return replace(found, seconds=time.monotonic() - began)

    def _look(
        self,
        commit: str,
        worktree: Path,
        scratch: Path,
        passes: int,
        cancel: threading.Event,
        is_measured: bool,
        began_ns: int,
    ) -> CommitLook:
        why = self._made_ready(worktree, scratch, cancel)
        depends: Dependencies | None = self._of_build()
        if why:
            return CommitLook(commit, Verdict.UNDECIDED, why, 0.0, runs=0, depends=depends)
        most = self._question.runs if is_measured else passes
        runs: list[_Ran] = []
        recordings: dict[Verdict, str] = {}
        while len(runs) < most and (is_measured or not any(each.verdict is Verdict.BAD for each in runs)):
            output = scratch / f"{len(runs)}.rdbg"
            ran = self._run(worktree, scratch, output, cancel)
            runs.append(ran)
            depends = self._with_run(depends, output, began_ns)
            if ran.verdict is Verdict.UNDECIDED:
                return _look_of(commit, runs, depends, ran.why)
            # Of the runs that fail the first one is kept, of the others the last one.
            if ran.verdict is Verdict.GOOD or Verdict.BAD not in recordings:
                recordings[ran.verdict] = self._keep(output, f"{commit}-{ran.verdict.value}.rdbg")
            output.unlink(missing_ok=True)
        return _look_of(commit, runs, depends, _why(runs, most), recordings)

    def _made_ready(self, worktree: Path, scratch: Path, cancel: threading.Event) -> str:
        """Complete the worktree and build; return the reason why the commit cannot be tested, empty if it can."""
        try:
            self._around.take_along(self._question.taken_along, worktree)
            if self._recorded is not None:
                write_missing(*self._recorded, self._around.files, worktree)
            return self._build(worktree, scratch, cancel)
        except OSError as error:
            return f"files cannot be copied into it: {error}"

    def _of_build(self) -> Dependencies:
        return Dependencies(unwatched={"the build command"} if self._question.build else set())

    def _with_run(self, before: Dependencies | None, output: Path, began_ns: int) -> Dependencies | None:
        """Return the dependencies of a look after one more run; None if that run cannot be read."""
        question = self._question
        try:
            if question.is_rest_recorded:
                more = Dependencies()
            elif question.replay is not None and question.recorded_root is not None:
                more = of_replay(question.replay, question.recorded_root, began_ns)
            elif before is None or not output.exists():
                return None
            else:
                more = of_run(output, self._worktrees.directory, began_ns)
        except (ReplaydbgError, OSError):
            return None
        if before is None:
            return more
        return Dependencies(before.states | more.states, before.unwatched | more.unwatched)

    def _build(self, worktree: Path, scratch: Path, cancel: threading.Event) -> str:
        directory = self._around.directory(worktree)
        if not directory.is_dir():
            return f"it has no directory {self._around.prefix!r}"
        if not self._question.build:
            return ""
        try:
            status = self._command([*START_COMMAND, self._question.build], worktree, scratch / "build.txt", cancel)
        except TimedOut:
            return f"the build took longer than {self._question.timeout:g} s"
        last_line = last_words(scratch / "build.txt")
        return f"it does not build: {last_line or ending_text(status)}" if status else ""

    def _run(self, worktree: Path, scratch: Path, output: Path, cancel: threading.Event) -> _Ran:
        question = self._question
        order: Order
        if question.replay is not None:
            order = self._replay_order(worktree)
        else:
            order = RecordOrder(self._around.program(question.program, worktree), str(output))
        printed, answer = scratch / "output.txt", scratch / "answer.json"
        answer.unlink(missing_ok=True)
        asked = scratch / "order.json"
        write_order(asked, order)
        command = [*START_COMMAND, str(answer), str(asked)]
        try:
            status = self._command(command, worktree, printed, cancel)
        except TimedOut:
            return _Ran(Verdict.UNDECIDED, f"it took longer than {question.timeout:g} s")
        if not answer.exists():
            last_line = last_words(printed)
            return _Ran(Verdict.UNDECIDED, f"the recorder ended ({ending_text(status)}): {last_line}")
        outcome = read_answer(answer)
        if isinstance(outcome, OrderFailed):
            return _Ran(Verdict.UNDECIDED, outcome.error.removesuffix("."))
        if isinstance(outcome, ReplayedCode):
            self.rate = outcome.rate or self.rate
            shifts = outcome.numbers_shift, outcome.clock_shift
            return _Ran(outcome.verdict, outcome.why, outcome.liberties, "", *shifts)
        self._check_sources(Path(outcome.recording), worktree)
        return _judge(outcome.status, last_words(printed), self.expected, self.end)

    def _replay_order(self, worktree: Path) -> ReplayOrder:
        question = self._question
        assert question.replay is not None and question.recorded_root is not None, question
        return ReplayOrder(
            str(question.replay),
            moved(question.replay, question.recorded_root, worktree, is_rest_recorded=question.is_rest_recorded),
            question.check,
            self.rate,
            self._data(worktree),
            question.is_rest_recorded,
        )

    def _data(self, worktree: Path) -> list[str]:
        """Return the recorded paths of the files and directories that come from the commit."""
        root = self._question.recorded_root
        if not self._question.is_data_of_commit or root is None:
            return []
        files = self._around.files | self._worktrees.files(worktree)
        folders = {str(parent) for file in files for parent in Path(file).parents}
        return [str(root / each) for each in files | folders]

    def _command(self, command: list[str], worktree: Path, output: Path, cancel: threading.Event) -> int:
        seed = self._question.hash_seed
        return run_command(
            command,
            directory=self._around.directory(worktree),
            environment=self._around.environment(worktree) | ({"PYTHONHASHSEED": str(seed)} if seed else {}),
            output=output,
            timeout=self._question.timeout,
            cancel=cancel,
        )

    def _check_sources(self, recording: Path, worktree: Path) -> None:
        """Raise Inconclusive if the checkout's code ran instead of the commit's: every verdict would be wrong."""
        directory = self._around.directory(worktree)
        for named in _sources(recording):
            path = str(directory / named)  # code may be compiled under a name that is relative to where it ran
            if self._around.is_file_of_ours(path):
                raise Inconclusive(
                    f"The program imports {path!r} from the checkout, not from the commit in its worktree: "
                    "set PYTHONPATH to the directory of the packages, such as PYTHONPATH=. or PYTHONPATH=src."
                )
            self.has_met_ours = self.has_met_ours or Path(path).is_relative_to(worktree)

    def _keep(self, recording: Path, name: str) -> str:
        if not recording.exists():
            return ""
        self._recordings.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = self._recordings / name
        # It may be on another file system than the worktrees.
        shutil.move(recording, target)
        return str(target)


def _look_of(
    commit: str,
    runs: list[_Ran],
    depends: Dependencies | None,
    why: str,
    recordings: Mapping[Verdict, str] = MappingProxyType({}),
) -> CommitLook:
    """Return the look at a commit after some runs, without the seconds that it took."""
    failed = [each for each in runs if each.verdict is Verdict.BAD]
    last = runs[-1]
    is_undecided = last.verdict is Verdict.UNDECIDED
    verdict = Verdict.UNDECIDED if is_undecided else Verdict.BAD if failed else Verdict.GOOD
    return CommitLook(
        commit,
        verdict,
        why,
        seconds=0.0,
        runs=len(runs),
        failed=len(failed) if not is_undecided else 0,
        failure=failed[0].failure if failed and not is_undecided else "",
        recording=recordings.get(verdict, ""),
        liberties=last.liberties,
        shift=last.shift,
        clock_shift=last.clock_shift,
        depends=depends,
    )


def _why(runs: list[_Ran], most: int) -> str:
    failed = [each for each in runs if each.verdict is Verdict.BAD]
    if most == 1:
        return runs[-1].why
    return f"{len(failed)} of {len(runs)} runs failed: {failed[0].why}" if failed else f"{len(runs)} runs passed"


def _sources(recording: Path) -> Mapping[str, str]:
    with open_recording(recording) as opened:
        return opened.end.sources if opened.end is not None else {}


def _judge(status: int, last_line: str, expected: str, end: str) -> _Ran:
    if status == 0:
        return _Ran(Verdict.GOOD, "exit code 0")
    if status == CANNOT_TEST:
        return _Ran(Verdict.UNDECIDED, f"exit code {CANNOT_TEST}: {last_line}".rstrip(": "))
    # The last line of a traceback, or the program's own last line.
    kind = _EXCEPTION.match(last_line)
    failure = f"{ending_text(status)}, {kind[1]}" if kind is not None else ending_text(status)
    why = f"{ending_text(status)}: {last_line}".rstrip(": ")
    if expected and failure != expected:
        return _Ran(Verdict.UNDECIDED, f"fails differently: {why}")
    if end and failure != end and kind is not None and kind[1].rpartition(".")[2] in DOES_NOT_START:
        return _Ran(Verdict.UNDECIDED, f"it does not start: {why}")
    return _Ran(Verdict.BAD, why, failure=failure)


def ending_text(status: int) -> str:
    """Return how a process with this status ended, in a few words."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
