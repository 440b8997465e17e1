"""Find the first bad commit: verify both ends, then look at commits, several at once, until one is left."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from replaydbg.bisect.confidence import chance_of_passing, runs_needed
from replaydbg.bisect.graph import CommitGraph, Narrowed, choose, is_informative, narrow
from replaydbg.commits.confirm import RealRuns
from replaydbg.commits.finished_search import settle
from replaydbg.commits.looking import CommitLooker, Looker, LookersElsewhere
from replaydbg.commits.progress import SearchProgress, Watcher
from replaydbg.commits.question import CommitLook, CommitSearchResult, Question
from replaydbg.commits.recorded_paths import data_files, untracked
from replaydbg.commits.repository import GitFailed, Repository
from replaydbg.commits.setting import Setting
from replaydbg.commits.state import State
from replaydbg.commits.surroundings import Surroundings
from replaydbg.commits.worktree_commands import GivenUp
from replaydbg.commits.worktrees import Worktrees, remove_all
from replaydbg.errors import Inconclusive
from replaydbg.events.verdict import Verdict
from replaydbg.store.directory import Store


def find_commit(
    question: Question,
    *,
    directory: Path,
    state: Path | None = None,
    is_restart: bool = False,
    store: Path,
    watch: Watcher = lambda progress: None,
    elsewhere: LookersElsewhere | None = None,
) -> CommitSearchResult:
    """Return the commit that introduced the failure, in the repository of `directory`.

    `state` is the file that holds the verdicts (None: one in the user's cache); an interrupted search is resumed from
    it unless `is_restart`. The recordings of the first bad commit and of the last good one go to the `store`. With
    `elsewhere` commits are looked at on other machines. Raises UsageError for an invalid question, Inconclusive if it
    has no answer, and what `elsewhere` raises. Worktrees are always removed.
    """
    try:
        return _find(Setting.of(question, directory), state, is_restart, Store(store), watch, elsewhere)
    except GitFailed as error:
        raise Inconclusive(f"A git command of the search failed: {error}.") from None


def _find(
    setting: Setting, state: Path | None, is_restart: bool, store: Store, watch: Watcher, far: LookersElsewhere | None
) -> CommitSearchResult:
    with ExitStack() as stack:
        kept = setting.open_state(state, is_restart=is_restart)
        stack.callback(kept.close)
        if kept.worktrees:
            # A killed search left them behind.
            remove_all(setting.repository, Path(kept.worktrees))
        worktrees = Worktrees(setting.repository)
        stack.callback(_forget_worktrees, kept)
        stack.callback(worktrees.close)
        kept.worktrees = str(worktrees.directory)
        kept.write()
        setting = setting.with_hash_seed(kept.key)
        recording, root = setting.question.replay, setting.question.recorded_root
        pair = (recording, root) if recording is not None and root is not None else None

        def looker_of(question: Question, around: Surroundings) -> CommitLooker:
            if far is not None:
                return far(question, around, kept.recordings, setting.all_commits())
            return Looker(question, worktrees, around, kept.recordings, recorded=pair)

        looker = looker_of(setting.question, setting.around)
        real = RealRuns(setting.question, setting.around.files, looker_of) if setting.question.confirming else None
        found = _CommitSearch(setting, kept, looker, watch, real).run()
        return settle(found, setting.history, kept, store)


def _forget_worktrees(state: State) -> None:
    state.worktrees = ""
    state.write()


class _CommitSearch:
    """One search in progress."""

    def __init__(
        self, setting: Setting, state: State, looker: CommitLooker, watch: Watcher, real: RealRuns | None = None
    ) -> None:
        self._real = real
        self._setting = setting
        self._question = setting.question
        self._repository: Repository = setting.repository
        self._state = state
        self._looker = looker
        self._watch = watch
        self._notes = list(setting.notes)
        self._suspects = len(setting.history.order)

    def run(self) -> CommitSearchResult:
        """Verify the ends, then narrow the history down."""
        self._verify()
        history = self._setting.history
        left = self._search(history)
        self._notes += [
            f"{name[:10]} is bad, which contradicts the other verdicts: the failure was fixed after it, or has two "
            "causes."
            for name in left.aside
        ]
        looks = tuple(self._state.looks.values())
        culprit = left.suspects[0] if len(left.suspects) == 1 else None
        if culprit is not None and self._state.looks[culprit].verdict is not Verdict.BAD:
            self._notes.append(
                f"{culprit[:10]} itself could not be tested: the commit before it is good, the commit after it bad."
            )
        if culprit is not None:
            self._notes += self._about_failures(culprit)
            self._notes += self._about_shifts(culprit)
        self._notes += self._about_reuse()
        commits = self._repository.commits({*left.suspects, *(look.commit for look in looks)})
        return CommitSearchResult(
            question=self._question,
            suspects=tuple(commits[name] for name in left.suspects),
            looks=looks,
            commits=commits,
            total=len(history.order),
            good=self._setting.good,
            bad=self._setting.bad,
            notes=tuple(dict.fromkeys(self._notes)),
            stat=self._repository.stat(culprit) if culprit is not None else "",
            passes_needed=self._state.passes_needed,
            root=self._repository.root,
            prefix=self._repository.prefix,
            files=self._setting.around.files,
            untracked=self._untracked(),
        )

    def _search(self, history: CommitGraph) -> Narrowed:
        """Narrow the history down; then look at the one suspect that is left, and at its parents, directly.

        A verdict that was inferred from other commits, or was kept without its recording, is verified. If that
        contradicts it, the search goes on.
        """
        seen: set[str] = set()
        while True:
            self._narrow(history)
            left = narrow(history, self._verdicts(history))
            if len(left.suspects) != 1:
                return left
            names = (left.suspects[0], *self._parents(history, left.suspects[0]))
            names = tuple(name for name in names if name not in seen and not self._is_witnessed(name))
            if not names and self._is_confirmed(left.suspects[0], history):
                return left
            seen.update(names)
            for name in names:
                self._state.looks.pop(name, None)
            self._look_at(names)
            self._verify()  # an end may be among them
            self._check_parents(left.suspects[0], names)

    def _is_confirmed(self, culprit: str, history: CommitGraph) -> bool:
        """Run the program itself at the culprit and before it, if requested; false if the search must go on."""
        if self._real is None:
            return True
        parents = self._parents(history, culprit)
        looks, sentence = self._real.check(culprit, parents)
        self._notes.append(sentence)
        for look in looks:
            before = self._state.looks[look.commit]
            self._state.note(replace(look, depends=before.depends, shift=before.shift, clock_shift=before.clock_shift))
        return not any(
            look.commit in parents and look.commit in history.parents and look.verdict is Verdict.BAD for look in looks
        )

    def _parents(self, history: CommitGraph, name: str) -> tuple[str, ...]:
        return history.parents.get(name, ())

    def _is_witnessed(self, name: str) -> bool:
        """Whether a commit was looked at directly, and its run, if the program ran, has a recording."""
        look = self._state.looks.get(name)
        if look is None:
            return False
        is_recorded = not look.recording or Path(look.recording).exists()
        needs_recording = self._question.replay is None and look.verdict is not Verdict.UNDECIDED
        return is_recorded and (bool(look.recording) or not needs_recording)

    def _check_parents(self, culprit: str, names: tuple[str, ...]) -> None:
        """Note a bad parent from before the good end: it is not in the part of the history that is searched."""
        for name in names:
            look = self._state.looks[name]
            if look.verdict is Verdict.BAD and name != culprit and name not in self._setting.history.parents:
                self._notes.append(
                    f"{name[:10]}, a parent of {culprit[:10]}, is bad ({look.why}) although the good end is later: "
                    "the failure was fixed in between."
                )

    def _verify(self) -> None:
        """Look at the ends; raises Inconclusive unless they are good and bad as given."""
        setting, question = self._setting, self._question
        if setting.bad not in self._state.looks:
            self._state.passes_needed = 0
        if question.runs == 1 and not question.is_same_failure:
            # Then both can be tested at once.
            self._state.passes_needed = 1
            self._look_at((setting.bad, setting.good))
        self._look_at((setting.bad,), is_measured=True)
        bad = self._state.looks[setting.bad]
        self._check_conclusive(bad, f"the bad end {question.bad}")
        if bad.verdict is not Verdict.BAD:
            hint = "" if question.replay or self._looker.has_met_ours or bad.is_reused else _NOTHING_MET
            # The user will repair something before the next attempt, perhaps where no dependency shows it.
            self._state.forget(setting.bad, setting.good)
            raise Inconclusive(
                f"The bad end {question.bad} is not bad ({bad.why}): there is nothing to search for.{hint}"
            )
        self._looker.end = bad.failure
        if question.is_same_failure:
            self._looker.expected = bad.failure
        if not self._state.passes_needed:
            self._state.passes_needed = _passes_needed(bad, question)
        self._look_at((setting.good,))
        good = self._state.looks[setting.good]
        self._check_conclusive(good, f"the good end {question.good}")
        if good.verdict is not Verdict.GOOD:
            self._state.forget(setting.bad, setting.good)
            raise Inconclusive(
                f"The good end {question.good} is not good ({good.why}): there is nothing to search for."
                f"{self._about_data()}"
            )
        self._look_at(setting.bases)
        for base in setting.bases:
            look = self._state.looks[base]
            if look.verdict is Verdict.BAD:
                raise Inconclusive(
                    f"{question.good} is not an ancestor of {question.bad}, and {base[:10]}, their merge base, is bad "
                    f"({look.why}): it was fixed on the way to {question.good}, and no commit has broken it since."
                )
            if look.verdict is Verdict.UNDECIDED:
                self._notes.append(
                    f"{question.good} is not an ancestor of {question.bad}, and {base[:10]}, their merge base, cannot "
                    f"be tested ({look.why}): the failure may be older than every commit that was searched."
                )

    def _check_conclusive(self, look: CommitLook, what: str) -> None:
        if look.verdict is Verdict.UNDECIDED:
            self._state.forget(self._setting.bad, self._setting.good)
            raise Inconclusive(f"Cannot test {what}: {look.why.rstrip('.')}.")

    def _untracked(self) -> tuple[Path, ...]:
        question = self._question
        if question.replay is None or question.recorded_root is None:
            return ()
        found = untracked(question.replay, question.recorded_root, self._setting.around.files)
        return tuple(question.recorded_root / inside for inside in found)

    def _about_data(self) -> str:
        """Return the data files of the repository that differ between the ends and were not read from the commits."""
        question = self._question
        if question.replay is None or question.recorded_root is None or question.is_data_of_commit:
            return ""
        good, bad = (self._repository.blobs(name) for name in (self._setting.good, self._setting.bad))
        read = data_files(question.replay, question.recorded_root, self._setting.around.files)
        names = [name for name in read if good.get(name) != bad.get(name)]
        if not names:
            return ""
        return (
            f" The program read the recorded {names[0]!r}, which differs between the ends; with --data-from-commit "
            "it reads the file of each commit."
        )

    def _about_failures(self, culprit: str) -> list[str]:
        """Return a note on a culprit that fails differently from the bad end; none if it does not."""
        here, end = (self._state.looks[name].failure for name in (culprit, self._setting.bad))
        if not here or not end or here == end:
            return []
        return [
            f"{culprit[:10]} fails with {here}, the bad end with {end}: it may be another failure. Use --same-failure "
            "to skip commits that fail differently from the bad end."
        ]

    def _about_shifts(self, culprit: str) -> list[str]:
        """Return a note on a culprit whose good parents received other inputs than recorded."""
        notes = []
        for name in self._parents(self._setting.history, culprit):
            look = self._state.looks.get(name)
            if look is not None and look.shift:
                notes.append(f"At {name[:10]} random numbers are drawn in a different order than recorded: {look.why}.")
            if look is not None and look.clock_shift:
                notes.append(
                    f"At {name[:10]} the clock is read in a different order than recorded ({look.clock_shift}), which "
                    "may be the only reason why it does not fail."
                )
        return notes

    def _about_reuse(self) -> list[str]:
        """Return notes on verdicts of an earlier search, and of this one."""
        notes = [
            f"{count} earlier verdict{'s are' if count > 1 else ' is'} not used, because {path!r} has changed since."
            for path, count in self._state.dropped.items()
        ]
        reused = (look.depends for look in self._state.looks.values() if look.is_reused)
        unwatched = sorted({what for each in reused if each is not None for what in each.unwatched})
        if unwatched:
            notes.append(
                f"Earlier verdicts are used; changes in what came from {' and '.join(unwatched)} would not be noticed "
                "(--restart tests all commits again)."
            )
        meanwhile = self._state.changed_meanwhile()
        if meanwhile:
            notes.append(
                f"{meanwhile!r} changed while the search ran, so verdicts from before and after the change may differ. "
                "Repeat the search: it will not use the earlier ones."
            )
        return notes

    def _narrow(self, history: CommitGraph) -> None:
        """Look at commits until no further look is informative."""
        running: dict[Future[CommitLook], tuple[str, threading.Event]] = {}
        with ThreadPoolExecutor(self._question.jobs) as pool:
            try:
                while True:
                    verdicts = self._verdicts(history)
                    self._suspects = len(narrow(history, verdicts).suspects)
                    for name, cancel in running.values():
                        if not is_informative(history, verdicts, name):
                            cancel.set()
                    names = [name for name, cancel in running.values() if not cancel.is_set()]
                    free = self._question.jobs - len(names)
                    for name in choose(history, verdicts, most=free, running=names) if free else ():
                        cancel = threading.Event()
                        running[pool.submit(self._one, name, cancel)] = (name, cancel)
                    if not running:
                        return
                    self._show(running)
                    self._collect(running)
            finally:
                for _, cancel in running.values():
                    cancel.set()

    def _look_at(self, names: tuple[str, ...], *, is_measured: bool = False) -> None:
        """Look at those of these commits that have not been looked at."""
        running: dict[Future[CommitLook], tuple[str, threading.Event]] = {}
        with ThreadPoolExecutor(self._question.jobs) as pool:
            try:
                for name in names:
                    if name not in self._state.looks:
                        cancel = threading.Event()
                        running[pool.submit(self._one, name, cancel, is_measured)] = (name, cancel)
                while running:
                    self._show(running)
                    self._collect(running)
            finally:
                for _, cancel in running.values():
                    cancel.set()

    def _one(self, name: str, cancel: threading.Event, is_measured: bool = False) -> CommitLook:
        passes = max(self._state.passes_needed, 1)
        return self._looker.look(name, passes=passes, cancel=cancel, is_measured=is_measured)

    def _collect(self, running: dict[Future[CommitLook], tuple[str, threading.Event]]) -> None:
        """Wait until a look is complete, and note it."""
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            running.pop(future)
            try:
                self._state.note(future.result())
            except GivenUp:
                continue  # another look made this one superfluous

    def _show(self, running: dict[Future[CommitLook], tuple[str, threading.Event]]) -> None:
        names = tuple(name for name, cancel in running.values() if not cancel.is_set())
        self._watch(SearchProgress(self._suspects, tuple(self._state.looks.values()), names))

    def _verdicts(self, history: CommitGraph) -> dict[str, Verdict]:
        looks = self._state.looks
        found = {history.end: looks[history.end].verdict}
        return found | {name: look.verdict for name, look in looks.items() if name in history.parents}


_NOTHING_MET = (
    " The program imported nothing of the repository: set PYTHONPATH to the directory of its packages, such as "
    "PYTHONPATH=. or PYTHONPATH=src."
)


def _passes_needed(bad: CommitLook, question: Question) -> int:
    """Return how many passing runs make a commit good; raises Inconclusive if that exceeds the allowed number."""
    needed = runs_needed(failed=bad.failed, measured=bad.runs, confidence=question.confidence)
    if needed > question.runs:
        reached = 1 - chance_of_passing(question.runs, failed=bad.failed, measured=bad.runs)
        raise Inconclusive(
            f"At the bad end {bad.failed} of {bad.runs} runs failed: {question.runs} passing runs make a commit good "
            f"with a confidence of {reached:.0%}, not {question.confidence:.0%}. Use about --runs {needed}."
        )
    return needed
