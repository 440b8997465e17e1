"""One run of `replaydbg ci`: take the verdicts that are known, compute the others, and find what changed where."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir

from replaydbg.commits.depends import States
from replaydbg.commits.repository import GitFailed, Repository
from replaydbg.commits.surroundings import Surroundings
from replaydbg.commits.worktrees import PREFIX, Worktrees, remove_all
from replaydbg.errors import Inconclusive, ReplaydbgError, UsageError
from replaydbg.log.hidden import RecordingMask
from replaydbg.regressions.case_history import history_of
from replaydbg.regressions.case_keys import CaseKey, CaseKeys
from replaydbg.regressions.code_verdicts import Case, CommitVerdict
from replaydbg.regressions.commit_tree import CommitTrees, state_at
from replaydbg.regressions.night import NightProgress, NightQuestion, NightReport, NightWatcher
from replaydbg.regressions.night_plan import NightPlan
from replaydbg.regressions.trial_pool import TrialPool, TrialRunner, TrialsElsewhere
from replaydbg.regressions.trial_slot import CommitTrial, TrialResult
from replaydbg.regressions.verdict_file import StateDirectory, VerdictFile


def run_night(
    question: NightQuestion,
    *,
    directory: Path,
    state: Path,
    is_restart: bool = False,
    watch: NightWatcher = lambda progress: None,
    elsewhere: TrialsElsewhere | None = None,
) -> NightReport:
    """Test the recordings at the commits, in the repository of `directory`, and return what was found.

    `state` is the directory that keeps the verdicts; with `is_restart` those that are known are not used. Each verdict
    is written when it is known, so a run that was interrupted or killed is continued by the next one. Recordings are
    replayed on this machine, or by the runner that `elsewhere` makes. Raises UsageError for an invalid question, or if
    another run uses the state; Inconclusive if git fails; what the runner raises. Worktrees are always removed.
    """
    began = time.monotonic()
    kept = StateDirectory(state)
    with kept.locked() as is_ours:
        if not is_ours:
            raise UsageError(f"Another `replaydbg ci` is running with the state directory {str(kept.path)!r}.")
        try:
            plan = NightPlan.of(question, Repository(directory))
            with closing(VerdictFile(kept.path)) as file, ExitStack() as stack:
                file.open(is_restart=is_restart)
                around = _surroundings(plan)
                worktrees = stack.enter_context(_worktrees(kept, plan.repository))
                pool: TrialRunner = (
                    elsewhere(plan.question.trials, around, plan.order)
                    if elsewhere is not None
                    else TrialPool(plan.question.trials, worktrees, around, plan.question.jobs)
                )
                stack.callback(pool.close)
                night = _Night(plan, file, pool, watch)
                night.begin(CaseKeys(plan.question, plan.repository, plan.last, around.files))
                night.run()
                report = night.report()
        except GitFailed as error:
            raise Inconclusive(f"A git command failed: {error}.") from None
    return replace(report, seconds=time.monotonic() - began)


@contextmanager
def _worktrees(kept: StateDirectory, repository: Repository) -> Iterator[Worktrees]:
    """Yield worktrees that are removed afterwards: if this run is killed, by the next one."""
    left = Path(kept.worktrees)
    # The state may come from somebody else's cache: nothing but our own temporary directories is removed in its name.
    if left.name.startswith(PREFIX) and left.parent == Path(gettempdir()).resolve() and _is_mine(left):
        remove_all(repository, left)
    worktrees = Worktrees(repository)
    try:
        kept.note_worktrees(str(worktrees.directory))
        yield worktrees
    finally:
        worktrees.close()
        kept.note_worktrees("")


def _is_mine(directory: Path) -> bool:
    return directory.is_dir() and not directory.is_symlink() and directory.stat().st_uid == os.geteuid()


def _surroundings(plan: NightPlan) -> Surroundings:
    root = plan.repository.root
    taken = {str(path.relative_to(root)) for path in plan.question.trials.taken_along}
    return Surroundings(root, plan.repository.prefix, plan.repository.files(*plan.bases[:1], plan.last) | taken)


@dataclass(slots=True)
class _Chain:
    """The commits at which a recording is still to be tested, one after the other.

    Not two at once: what the first trial shows about the code of the next commit may make that trial superfluous.
    """

    case: Case
    key: CaseKey
    mask: RecordingMask
    """That of the recording's secrets: what is known about it is printed, written to files and uploaded."""
    left: list[str]
    """The next one is the last of the list: the newest commit comes first."""
    verdicts: dict[str, CommitVerdict] = field(default_factory=dict)
    is_running: bool = False


def _masked_case(case: Case, mask: RecordingMask) -> Case:
    what, command, problem = map(mask.masked_text, (case.what, case.command, case.problem))
    return replace(case, what=what, command=command, problem=problem)


class _Night:
    """One run in progress."""

    def __init__(self, plan: NightPlan, file: VerdictFile, pool: TrialRunner, watch: NightWatcher) -> None:
        self._plan = plan
        self._file = file
        self._pool = pool
        self._watch = watch
        self._trees = CommitTrees(plan.repository)
        self._machine = States()
        self._place = {commit: index for index, commit in enumerate(plan.order)}
        self._problems: dict[int, Case] = {}
        """By the place of the recording in the question: those that cannot be tested."""
        self._chains: dict[int, _Chain] = {}

    def run(self) -> None:
        """Find all verdicts."""
        for commit in reversed(self._plan.order):  # by commits, whose trees are read once in this way
            for chain in self._chains.values():
                if chain.left and chain.left[-1] == commit:
                    self._skip_known(chain)
        while True:
            while self._pool.has_room and (waiting := self._next()) is not None:
                waiting.is_running = True
                self._pool.submit(CommitTrial(waiting.case.path, waiting.key.root, waiting.left[-1]))
            self._show()
            if not self._pool.running:
                return
            for trial, result in self._pool.wait():
                self._note(trial, result)

    def begin(self, keys: CaseKeys) -> None:
        """Find out what each recording is."""
        for number, given in enumerate(self._plan.question.cases):
            mask = RecordingMask(given.path, has_beginnings=True)
            case = _masked_case(given, mask)
            try:
                if case.problem:
                    self._problems[number] = case
                else:
                    self._chains[number] = _Chain(case, keys.of(case.path), mask, list(self._plan.order))
            except (ReplaydbgError, OSError) as error:
                self._problems[number] = replace(case, problem=mask.masked_text(str(error)))

    def _next(self) -> _Chain | None:
        """Return the recording to test next: where a commit is checked out already, else at the newest commit."""
        waiting = [chain for chain in self._chains.values() if chain.left and not chain.is_running]
        here = set(self._pool.commits)
        ready = next((chain for chain in waiting if chain.left[-1] in here), None)
        return ready or max(waiting, key=lambda chain: self._place[chain.left[-1]], default=None)

    def _note(self, trial: CommitTrial, result: TrialResult) -> None:
        """Take the result of a trial."""
        chain = next(each for each in self._chains.values() if each.is_running and each.case.path == trial.recording)
        chain.is_running = False
        commit = chain.left.pop()
        verdict = replace(result.verdict, why=chain.mask.masked_text(result.verdict.why))
        chain.verdicts[commit] = verdict
        if result.reads is not None:
            at = state_at(result.reads, self._trees.of(commit), self._machine)
            self._file.keep(chain.key.key, result.reads, at, verdict, commit)
        self._skip_known(chain)

    def _skip_known(self, chain: _Chain) -> None:
        """Take the verdicts that follow from known ones, up to the next commit without one."""
        while chain.left:
            known = self._known(chain, chain.left[-1])
            if known is None:
                return
            chain.verdicts[chain.left.pop()] = known

    def _known(self, chain: _Chain, commit: str) -> CommitVerdict | None:
        for reads in self._file.reads_of(chain.key.key):
            at = state_at(reads, self._trees.of(commit), self._machine)
            known = self._file.verdict(chain.key.key, reads, at)
            if known is not None:
                found = "known" if not known.is_new else "equal"
                # Earlier versions wrote reasons with secrets into the file.
                why = chain.mask.masked_text(known.verdict.why)
                return replace(known.verdict, why=why, seconds=0.0, found=found)
        return None

    def _show(self) -> None:
        done = sum(len(chain.verdicts) for chain in self._chains.values())
        total = done + sum(len(chain.left) for chain in self._chains.values())
        names = tuple(chain.case.name for chain in self._chains.values() if chain.is_running)
        self._watch(NightProgress(done, total, names))

    def report(self) -> NightReport:
        """Return the result, and note which recordings pass now."""
        plan = self._plan
        histories = []
        for number in range(len(plan.question.cases)):
            chain = self._chains.get(number)
            if chain is None:
                histories.append(history_of(self._problems[number], {}, plan, str))
                continue
            found = history_of(chain.case, chain.verdicts, plan, partial(self._passed_at, chain.key.recording))
            if found.passes_now:
                self._file.note_passed(chain.key.recording, plan.last)
            histories.append(found)
        counts = Counter(verdict.found for chain in self._chains.values() for verdict in chain.verdicts.values())
        commits = plan.repository.commits(plan.order)
        return NightReport(
            question=plan.question,
            commits=tuple(commits[name] for name in plan.order),
            bases=frozenset(plan.bases),
            parents=plan.graph.parents,
            histories=tuple(histories),
            counts=counts,
            seconds=0.0,
            notes=tuple(self._file.notices),
            root=plan.repository.root,
        )

    def _passed_at(self, recording: str) -> str:
        """Return a commit before the last one at which a recording passed at the end of an earlier run; or nothing."""
        commits = reversed(self._file.passed(recording))
        return next((each for each in commits if self._plan.repository.is_ancestor(each, self._plan.last)), "")
