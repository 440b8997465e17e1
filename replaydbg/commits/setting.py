"""Everything that is known before the first look: the repository, both ends, the commits between them, the program."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from replaydbg.bisect.graph import CommitGraph
from replaydbg.commits.fingerprint import key_of, parts_of
from replaydbg.commits.question import Question
from replaydbg.commits.recorded_paths import find_root
from replaydbg.commits.repository import Repository, outside_environment
from replaydbg.commits.state import State
from replaydbg.commits.surroundings import Surroundings, other_python, without_python
from replaydbg.config import user_cache_directory
from replaydbg.errors import Inconclusive, UsageError


@dataclass(frozen=True, slots=True)
class Setting:
    """The initial data of a search."""

    question: Question
    """The question, completed as far as possible."""
    repository: Repository
    """The user's repository."""
    around: Surroundings
    """Translates paths of the checkout into paths of worktrees."""
    history: CommitGraph
    """The candidates for the first bad commit."""
    good: str
    """The good end's full name."""
    bad: str
    """The bad end's full name."""
    bases: tuple[str, ...]
    """The merge bases, if the good end is not an ancestor of the bad one; they must be good, too."""
    notes: tuple[str, ...]
    """Notes for the reader."""

    @classmethod
    def of(cls, question: Question, directory: Path) -> Setting:
        """Collect it; raises UsageError for an invalid question, Inconclusive if the search cannot have an answer."""
        _check(question)
        repository = Repository(directory)
        good, bad = repository.resolve(question.good), repository.resolve(question.bad)
        bases = _bases(repository, question, good, bad)
        history = repository.history(good, bad, is_first_parent=question.is_first_parent)
        _check_whole(repository, history)
        files = repository.files(good, bad)
        question, notes = _complete(question, repository, files, bad)
        taken = {str(path.relative_to(repository.root)) for path in question.taken_along}
        around = Surroundings(repository.root, repository.prefix, files | taken)
        if bases:
            notes += (f"{question.good} is not an ancestor of {question.bad}: their merge base must be good, too.",)
        if ".gitmodules" in files:
            notes += ("Submodules are empty in worktrees; --build 'git submodule update --init' fills them.",)
        return cls(question, repository, around, history, good, bad, bases, notes)

    def all_commits(self) -> tuple[str, ...]:
        """Return the full names of all commits that the search may look at, the older ones first."""
        above = (parent for parents in self.history.parents.values() for parent in parents)
        return tuple(dict.fromkeys((self.good, *self.bases, *above, *self.history.order, self.bad)))

    def with_hash_seed(self, key: str) -> Setting:
        """Return it with one hash seed for all commits, drawn from the state's `key` (equal after a resumption).

        With different orders of sets two commits would seem to differ. A failure that comes and goes gets another seed
        in each run.
        """
        if self.question.runs > 1 or self.question.replay is not None or "PYTHONHASHSEED" in outside_environment():
            return self
        return replace(self, question=replace(self.question, hash_seed=1 + int(key[:8], 16) % (2**32 - 1)))

    def open_state(self, path: Path | None, *, is_restart: bool) -> State:
        """Open the file with the verdicts of earlier searches for the same question; raises UsageError."""
        sides = replace(self.question, good=self.good, bad=self.bad)
        parts = parts_of(self.repository, sides)
        state = State(path or user_cache_directory() / "bisect" / f"{key_of(parts)}.json", parts)
        state.replayed = self.question.replay
        state.open(is_restart=is_restart)
        return state


def _check(question: Question) -> None:
    if not question.program and question.replay is None:
        raise UsageError("Nothing to run at each commit: give a program after --, or --replay RECORDING.")
    if question.program and question.replay is not None:
        raise UsageError("A program after -- and --replay cannot be used together.")
    if question.check and question.replay is None:
        raise UsageError("--check is evaluated in a replay: it needs --replay RECORDING.")
    if question.confirming and question.replay is None:
        raise UsageError("--confirm needs --replay RECORDING: without it the program runs at each commit.")
    if question.is_data_of_commit and question.replay is None:
        raise UsageError("--data-from-commit needs --replay RECORDING: a program that runs reads the commit's files.")
    if question.runs > 1 and question.replay is not None:
        raise UsageError("--runs is for programs that fail now and then: a replay is the same each time.")


def _bases(repository: Repository, question: Question, good: str, bad: str) -> tuple[str, ...]:
    """Return the merge bases of the ends, none if the good one is an ancestor; raises UsageError for a bad pair."""
    if good == bad:
        raise UsageError(f"{question.good!r} and {question.bad!r} are the same commit.")
    if repository.is_ancestor(good, bad):
        return ()
    if repository.is_ancestor(bad, good):
        raise UsageError(f"{question.bad!r} is an ancestor of {question.good!r}: the good end must be the older one.")
    bases = repository.merge_bases(good, bad)
    if not bases:
        hint = " The clone is shallow: `git fetch --unshallow` may help." if repository.is_shallow() else ""
        raise UsageError(f"{question.good!r} and {question.bad!r} have no history in common.{hint}")
    return bases


def _check_whole(repository: Repository, history: CommitGraph) -> None:
    if not repository.is_shallow():
        return
    cut = repository.boundaries().intersection(history.order)
    if cut:
        raise Inconclusive(
            f"The clone is shallow and lacks commits before {min(cut)[:10]} that must be searched: "
            "`git fetch --unshallow` fetches them."
        )


def _complete(
    question: Question, repository: Repository, files: frozenset[str], bad: str
) -> tuple[Question, tuple[str, ...]]:
    """Return the question with the values that can be found out, and notes on these for the user."""
    root, notes = repository.root, []
    taken = []
    for path in question.taken_along:
        whole = (root / repository.prefix / path).resolve()
        if not whole.exists() or not whole.is_relative_to(root):
            raise UsageError(f"{str(path)!r} is not in the checkout: --with copies only files of the checkout.")
        if whole == root or ".git" in whole.relative_to(root).parts:
            raise UsageError(f"{str(path)!r} cannot be copied: name files or directories of the checkout.")
        taken.append(whole)
    here = root / repository.prefix
    python = other_python(question.program)
    program = tuple(_from_anywhere(word, here, root) for word in without_python(question.program))
    if program and not program[0].startswith("-"):
        script = _place(here / program[0])
        inside = script.is_relative_to(root) and str(script.relative_to(root)) not in files
        if inside and script.is_file() and script.is_relative_to(Path(sys.prefix)):
            program = (str(script), *program[1:])
        elif inside and script.is_file() and script not in taken:
            notes.append(f"{program[0]} is not in the commits: it is copied into each worktree.")
            taken.append(script)
    if question.replay is not None:
        recorded_root = question.recorded_root or find_root(question.replay, repository, bad)
        question = replace(question, recorded_root=recorded_root.absolute())
    elif repository.is_dirty():
        notes.append("The checkout has uncommitted changes; they are not tested.")
    if python is not None:
        program = (python, *program)
    return replace(question, program=program, taken_along=tuple(taken)), tuple(notes)


def _from_anywhere(word: str, here: Path, root: Path) -> str:
    """Return a word of the command line in a form that names the same file from a worktree.

    A relative path that leads out of the repository becomes absolute: a worktree has other surroundings. One that comes
    back, or goes through a link, becomes the shortest one.
    """
    path = Path(word)
    if word.startswith("-") or path.is_absolute():
        return word
    try:
        if not (here / path).exists():
            return word
        whole = _place(here / path)
    except (OSError, ValueError):
        return word  # not a path, such as the text of a program
    if not whole.is_relative_to(root):
        return str(whole)
    return os.path.relpath(whole, here) if ".." in path.parts else word


def _place(path: Path) -> Path:
    """Return the path with the links of its directory resolved; the file may be a link itself."""
    return path.parent.resolve() / path.name if path.name not in ("", "..") else path.resolve()
