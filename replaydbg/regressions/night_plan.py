"""What is known before anything is tested: the repository, the commits and their parents, the files to copy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from replaydbg.bisect.graph import CommitGraph
from replaydbg.commits.repository import GitFailed, Repository
from replaydbg.errors import UsageError
from replaydbg.regressions.night import NightQuestion


@dataclass(frozen=True, slots=True)
class NightPlan:
    """The initial data of a run."""

    question: NightQuestion
    """The question, with the paths of `trials.taken_along` made absolute."""
    repository: Repository
    last: str
    """The full name of the last commit."""
    graph: CommitGraph
    """The commits of the range, oldest first, with the parents of each."""
    bases: tuple[str, ...]
    """The commits before the range: its beginning, and parents of commits of the range that are not in it."""

    @classmethod
    def of(cls, question: NightQuestion, repository: Repository) -> NightPlan:
        """Collect it. Raises UsageError for an invalid question."""
        first, last = repository.resolve(question.first), repository.resolve(question.last)
        if first != last and repository.is_ancestor(last, first):
            raise UsageError(f"{question.last!r} is an ancestor of {question.first!r}: give the older commit first.")
        graph = repository.history(first, last, is_first_parent=question.is_first_parent)
        _check_whole(repository, graph)
        outside = (each for commit in graph.order for each in graph.parents[commit] if each not in graph.parents)
        bases = tuple(dict.fromkeys((first, *outside)))
        taken = tuple(_in_checkout(repository, path) for path in question.trials.taken_along)
        trials = replace(question.trials, taken_along=taken)
        return cls(replace(question, trials=trials), repository, last, graph, bases)

    @property
    def order(self) -> tuple[str, ...]:
        """All commits that are tested; parents come before their children."""
        return (*self.bases, *self.graph.order)


def range_of(repository: Repository, *, commits: str | None, last: int | None) -> tuple[str, str]:
    """Return the two ends for `GOOD..BAD`, or for the last commits of the checkout, with the one before them.

    Raises UsageError.
    """
    if (commits is None) == (last is None):
        raise UsageError("Give the commits to test: --commits GOOD..BAD, or --last N.")
    if commits is not None:
        first, dots, end = commits.partition("..")
        if not dots or not first or not end or end.startswith("."):
            raise UsageError(f"--commits must be GOOD..BAD, such as v1.4..main (got {commits!r}).")
        return first, end
    assert last is not None
    if last < 1:
        raise UsageError(f"--last must be at least 1 (got {last}).")
    try:
        names = repository.ask("rev-list", "--first-parent", f"--max-count={last + 1}", "HEAD", "--").split()
    except GitFailed:
        raise UsageError("This repository has no commits yet.") from None
    return names[-1], names[0]


def _check_whole(repository: Repository, graph: CommitGraph) -> None:
    """Raise UsageError if a shallow clone lacks parents of commits in the range."""
    cut = repository.boundaries().intersection(graph.order) if repository.is_shallow() else frozenset()
    if cut:
        raise UsageError(
            f"The clone is shallow and lacks commits before {min(cut)[:10]} that must be tested: "
            "`git fetch --unshallow` fetches them."
        )


def _in_checkout(repository: Repository, path: Path) -> Path:
    whole = (repository.root / repository.prefix / path).resolve()
    if not whole.exists() or not whole.is_relative_to(repository.root):
        raise UsageError(f"{str(path)!r} is not in the checkout: --with copies only files of the checkout.")
    if whole == repository.root or ".git" in whole.relative_to(repository.root).parts:
        raise UsageError(f"{str(path)!r} cannot be copied: name files or directories of the checkout.")
    return whole
