"""Test recordings in a worktree: check a commit out and build it once, then replay one recording after the other."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from replaydbg.commits.depends import (
    CONTENT,
    MODULES,
    PRESENCE,
    VOLATILE,
    Dependency,
    is_of_interpreter,
    loaded_extensions,
    of_replay,
)
from replaydbg.commits.looking import START_COMMAND, ending_text
from replaydbg.commits.orders import OrderFailed, ReplayedCode, ReplayOrder, read_answer, write_order
from replaydbg.commits.recorded_paths import moved, source_of_cache, write_missing
from replaydbg.commits.repository import GitFailed
from replaydbg.commits.surroundings import Surroundings
from replaydbg.commits.worktree_commands import TimedOut, last_words, run_command
from replaydbg.commits.worktrees import Worktrees
from replaydbg.errors import ReplaydbgError, clause
from replaydbg.log.reader import open_recording
from replaydbg.regressions.code_verdicts import CodeReads, CodeState, CommitVerdict, state_of_verdict
from replaydbg.regressions.night import TrialSettings

_ASPECTS = {"listdir": MODULES, "stat": PRESENCE, "read": CONTENT, "data": CONTENT}


@dataclass(frozen=True, slots=True)
class CommitTrial:
    """One recording to be tested at one commit."""

    recording: Path
    root: Path
    """The repository's directory as the recorded program saw it."""
    commit: str
    """The full name."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a trial found."""

    verdict: CommitVerdict
    reads: CodeReads | None = None
    """What the verdict depends on; None: it is not to be kept, since it depends on something else."""


class TrialSlot:
    """A worktree in which one recording is tested at a time."""

    def __init__(
        self, how: TrialSettings, worktrees: Worktrees, around: Surroundings, rates: dict[Path, tuple[int, int]]
    ) -> None:
        """`rates` has how often the code of a recording fails with other random numbers, see `ReplayOrder`.

        What is not known is measured and added, so several slots can share it.
        """
        self._how = how
        self._worktrees = worktrees
        self._around = around
        self._worktree: Path | None = None
        self.commit = ""
        """The commit that is checked out in it; empty: none."""
        self._unfit = ""
        """Why that cannot be tested; empty: it can."""
        self.began_ns = time.time_ns()
        """A verdict is not kept if it depends on a file of the machine that has changed since then."""
        self._rates = rates

    def run(self, trial: CommitTrial, cancel: threading.Event) -> TrialResult:
        """Test a recording at a commit. Raises GivenUp when `cancel` is set."""
        began = time.monotonic()
        if trial.commit != self.commit:
            self._unfit = self._check_out(trial.commit, cancel)
            self.commit = trial.commit
        if self._unfit or self._worktree is None:
            return untested(self._unfit, began)
        written: list[Path] = []
        try:
            with tempfile.TemporaryDirectory(dir=self._worktrees.directory) as scratch:
                written = write_missing(trial.recording, trial.root, self._around.files, self._worktree)
                return self._replay(trial, self._worktree, Path(scratch), cancel, began)
        except (ReplaydbgError, OSError) as error:
            self.commit = ""  # what was written into the worktree is unknown
            return untested(str(error).removesuffix("."), began)
        finally:
            _remove(written, self._worktree)

    def close(self) -> None:
        """Leave the worktree to others."""
        if self._worktree is not None:
            self._worktrees.give_back(self._worktree)
            self._worktree, self.commit = None, ""

    def _check_out(self, commit: str, cancel: threading.Event) -> str:
        """Check a commit out and build it; return why it cannot be tested, empty if it can."""
        self.close()
        try:
            self._worktree = self._worktrees.take(commit)
            self._around.take_along(self._how.taken_along, self._worktree)
        except GitFailed as error:
            return f"git cannot check it out: {error}"
        except OSError as error:
            return f"files cannot be copied into it: {error}"
        return self._build(self._worktree, cancel) if self._how.build else ""

    def _build(self, worktree: Path, cancel: threading.Event) -> str:
        if not self._around.directory(worktree).is_dir():
            return f"it has no directory {self._around.prefix!r}"
        with tempfile.TemporaryDirectory(dir=self._worktrees.directory) as scratch:
            output = Path(scratch, "build.txt")
            try:
                status = self._command([*START_COMMAND, self._how.build], worktree, output, cancel)
            except TimedOut:
                return f"the build took longer than {self._how.timeout:g} s"
            return f"it does not build: {last_words(output) or ending_text(status)}" if status else ""

    def _replay(
        self, trial: CommitTrial, worktree: Path, scratch: Path, cancel: threading.Event, began: float
    ) -> TrialResult:
        is_rest_recorded = self._how.is_rest_recorded
        sources = moved(trial.recording, trial.root, worktree, is_rest_recorded=is_rest_recorded)
        rate = self._rates.get(trial.recording)
        data = self._data(trial, worktree)
        order = ReplayOrder(str(trial.recording), sources, "", rate, data, is_rest_recorded)
        asked, answer, printed = (scratch / name for name in ("order.json", "answer.json", "output.txt"))
        write_order(asked, order)
        try:
            status = self._command([*START_COMMAND, str(answer), str(asked)], worktree, printed, cancel)
        except TimedOut:
            return untested(f"it took longer than {self._how.timeout:g} s", began)
        if not answer.exists():
            last_line = last_words(printed)
            return untested(f"the replay ended ({ending_text(status)}): {last_line}".rstrip(": "), began)
        found = read_answer(answer)
        if not isinstance(found, ReplayedCode):
            error = found.error if isinstance(found, OrderFailed) else "it was recorded"
            return untested(error.removesuffix("."), began)
        if found.rate is not None:
            self._rates[trial.recording] = found.rate
        state = state_of_verdict(found.verdict, is_other_failure=found.is_other_failure)
        # The programs of recordings see the recorded paths.
        why = found.why.replace(f"{trial.root}/", "").replace(f"{worktree}/", "")
        if state is CodeState.UNKNOWN:
            why = why.replace("fails differently: ", "it does not start: ", 1)
        verdict = CommitVerdict(state, clause(why), round(time.monotonic() - began, 3))
        return TrialResult(verdict, self._reads(found, trial, sources))

    def _reads(self, found: ReplayedCode, trial: CommitTrial, sources: dict[str, str]) -> CodeReads | None:
        """Return what a verdict depends on; None if a file of the machine has changed since this run began."""
        if found.looked is None:
            is_rest_recorded = self._how.is_rest_recorded
            today = [] if is_rest_recorded else of_replay(trial.recording, trial.root, self.began_ns).states
            reads = CodeReads((), tuple(sorted(today)), is_whole=True)
        else:
            roots = (trial.root, Path(sources[str(trial.root)]))
            installed = [old for old, new in sources.items() if new in (old, "")]
            reads = reads_of(found.looked, roots, installed, self._around.prefix)
        if self._how.is_rest_recorded:
            # The recording answers where they are, and what is there is loaded.
            with open_recording(trial.recording) as opened:
                loaded = {Dependency(CONTENT, path) for path in loaded_extensions(opened)}
            reads = replace(reads, outside=tuple(sorted({*reads.outside, *loaded})))
        if self._how.build:
            reads = CodeReads((), reads.outside, is_whole=True)
        return None if any(has_changed(each, self.began_ns) for each in reads.outside) else reads

    def _data(self, trial: CommitTrial, worktree: Path) -> list[str]:
        """Return the recorded paths of the files and directories that come from the commit."""
        if not self._how.is_data_of_commit:
            return []
        # Not those of other commits: the verdict must not depend on the range. What this one lacks is as recorded.
        root = self._around.root
        taken = {str(path.relative_to(root)) for path in self._how.taken_along}
        files = taken | self._worktrees.files(worktree)
        folders = {str(parent) for file in files for parent in Path(file).parents}
        return [str(trial.root / each) for each in files | folders]

    def _command(self, command: list[str], worktree: Path, output: Path, cancel: threading.Event) -> int:
        directory = self._around.directory(worktree)
        return run_command(
            command,
            directory=directory if directory.is_dir() else worktree,
            environment=self._around.environment(worktree),
            output=output,
            timeout=self._how.timeout,
            cancel=cancel,
        )


def reads_of(
    looked: Iterable[tuple[str, str]], roots: Sequence[Path], installed: Iterable[str], prefix: str = ""
) -> CodeReads:
    """Return what the questions of a replay depend on.

    `roots` are the directories of the repository: the recorded one, and the worktree. `installed` are directories in
    them that are in no commit; `prefix` is the directory in the worktree from which relative paths lead.
    """
    inside, outside = set(), set()
    apart = [f"{each}/" for each in installed]
    for question, path in looked:
        root = next((each for each in roots if f"{path}/".startswith(f"{each}/")), None)
        if root is not None and not any(f"{path}/".startswith(each) for each in apart):
            inside.add((question, path[len(str(root)) + 1 :]))
            if path.endswith(".so"):
                # It is loaded from where it was recorded.
                outside.add(Dependency(CONTENT, path))
        elif path and not path.startswith("/"):
            inside.add((question, f"{prefix}/{path}" if prefix else path))
        elif path.startswith("/") and not path.startswith(VOLATILE) and not is_of_interpreter(path):
            # Byte code has the time of its source in it, which each installation sets anew.
            aspect = CONTENT if path.endswith(".so") else _ASPECTS.get(question, CONTENT)
            outside.add(Dependency(aspect, source_of_cache(path) if question == "read" else path))
    return CodeReads(tuple(sorted(inside)), tuple(sorted(outside)))


def has_changed(dependency: Dependency, began_ns: int) -> bool:
    """Whether a file of the machine has changed since then: which state of it the replay saw is unknown."""
    try:
        return dependency.aspect == CONTENT and Path(dependency.path).stat().st_ctime_ns >= began_ns
    except (OSError, ValueError):
        return False


def untested(why: str, began: float) -> TrialResult:
    """Return the result of a trial that could not be made; it began at that time of the monotonic clock."""
    text = clause("".join(char if char.isprintable() else " " for char in why))
    return TrialResult(CommitVerdict(CodeState.UNKNOWN, text, round(time.monotonic() - began, 3)))


def _remove(written: list[Path], worktree: Path) -> None:
    """Remove the files of one recording from a worktree, and the directories that were made for them."""
    for path in written:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            continue
        path.unlink(missing_ok=True)
        parent = path.parent
        while parent != worktree and parent.is_relative_to(worktree):
            try:
                parent.rmdir()
            except OSError:
                break  # it has other files
            parent = parent.parent
