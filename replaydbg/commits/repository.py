"""Query git about the user's repository; nothing here changes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from replaydbg.bisect.graph import CommitGraph
from replaydbg.commits.question import Commit
from replaydbg.errors import UsageError

_QUIET = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "gc.auto=0",
    "-c",
    "core.fsmonitor=false",
)
"""Options that disable the repository's own hooks for our worktrees, and git's automatic clean-up."""
_FIELDS = "%H%x00%an <%ae>%x00%aI%x00%s"


class GitFailed(Exception):
    """A git command failed; the message is the last line of its output."""


class Repository:
    """The repository of the working directory."""

    def __init__(self, directory: Path) -> None:
        """Find the repository of `directory`; raises UsageError if there is none that can be bisected."""
        self.program = shutil.which("git") or ""
        if not self.program:
            raise UsageError("git is not installed, or not on PATH: commits cannot be bisected without it.")
        self._directory = directory
        try:
            if self.ask("rev-parse", "--is-bare-repository") == "true":
                raise UsageError(f"{str(directory)!r} is a bare repository: bisect in a clone of it.")
            self.root = Path(self.ask("rev-parse", "--show-toplevel"))
        except GitFailed as error:
            raise UsageError(f"{str(directory)!r} is in no git repository: {error}.") from None
        self.prefix = self.ask("rev-parse", "--show-prefix").rstrip("/")

    def run(self, *words: str, directory: Path | None = None, given: str | None = None) -> str:
        """Run git and return its output; raises GitFailed."""
        command = [self.program, *_QUIET, *words]
        # Without optional locks: else `git status` would rewrite the user's index.
        environment = (os.environ if directory is None else outside_environment()) | {
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            command,
            cwd=directory or self._directory,
            env=environment,
            input=given,
            stdin=None if given is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        if done.returncode:
            errors = done.stderr.strip().splitlines() or [f"git {words[0]} ended with exit code {done.returncode}"]
            raise GitFailed(errors[-1].removeprefix("fatal: ").removeprefix("error: ").rstrip("."))
        return done.stdout

    def ask(self, *words: str) -> str:
        """Run git and return its output without the end of line; raises GitFailed."""
        return self.run(*words).rstrip("\n")

    def resolve(self, revision: str) -> str:
        """Return the full name of the commit that `revision` names; raises UsageError."""
        try:
            return self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        except GitFailed:
            hint = (
                " The clone is shallow: `git fetch --unshallow` fetches what is missing." if self.is_shallow() else ""
            )
            raise UsageError(f"No commit {revision!r} in this repository.{hint}") from None

    def is_shallow(self) -> bool:
        """Whether the history was cut when the repository was cloned."""
        return self.ask("rev-parse", "--is-shallow-repository") == "true"

    def boundaries(self) -> frozenset[str]:
        """Return the commits whose parents a shallow clone lacks."""
        try:
            text = Path(self._directory, self.ask("rev-parse", "--git-path", "shallow")).read_text(encoding="ascii")
        except OSError:
            return frozenset()
        return frozenset(text.split())

    def is_ancestor(self, one: str, other: str) -> bool:
        """Whether `one` is `other` or in its history."""
        try:
            self.run("merge-base", "--is-ancestor", one, other)
        except GitFailed:
            return False
        return True

    def merge_bases(self, one: str, other: str) -> tuple[str, ...]:
        """Return the merge bases of two commits; none if their histories have nothing in common."""
        try:
            return tuple(self.ask("merge-base", "--all", one, other).split())
        except GitFailed:
            return ()

    def history(self, good: str, bad: str, *, is_first_parent: bool) -> CommitGraph:
        """Return the commits that are in the history of `bad` and not in that of `good`."""
        way = ["--first-parent"] if is_first_parent else []
        text = self.run("rev-list", "--topo-order", "--reverse", "--parents", *way, bad, f"^{good}", "--")
        parents: dict[str, tuple[str, ...]] = {}
        for line in text.splitlines():
            name, *above = line.split()
            parents[name] = tuple(above[:1] if is_first_parent else above)
        return CommitGraph(tuple(parents), parents)

    def commits(self, names: Iterable[str]) -> dict[str, Commit]:
        """Return the commits with these full names, with their log data."""
        given = "\n".join(names)
        text = self.run("log", "--no-walk=unsorted", f"--format={_FIELDS}", "--stdin", "--", given=given + "\n--\n")
        found = [Commit(*line.split("\0", 3)) for line in text.splitlines() if line]
        return {commit.name: commit for commit in found}

    def stat(self, name: str) -> str:
        """Return the files that a commit changed, and by how many lines."""
        return self.run("show", "--stat", "--format=", "--no-color", "-m", "--first-parent", name, "--").strip("\n")

    def files(self, *names: str) -> frozenset[str]:
        """Return the paths of all files in any of these commits, from the root."""
        found: set[str] = set()
        for name in names:
            found.update(filter(None, self.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", name).split("\0")))
        return frozenset(found)

    def blobs(self, name: str) -> dict[str, str]:
        """Return the hash of each file's content in a commit."""
        found = {}
        for line in self.run("ls-tree", "-r", "-z", "--full-tree", name).split("\0"):
            about, _, path = line.partition("\t")
            if path:
                found[path] = about.split()[2]
        return found

    def is_dirty(self) -> bool:
        """Whether tracked files of the checkout differ from its commit."""
        return bool(self.ask("status", "--porcelain", "--untracked-files=no"))


_LOCAL: Sequence[str] = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
"""The list of `git rev-parse --local-env-vars`, without configuration: in a hook they name the user's repository,
and a program in a worktree that calls git would use that one.
"""


def outside_environment() -> dict[str, str]:
    """Return the environment without the variables that tie git to one repository."""
    return {name: value for name, value in os.environ.items() if name not in _LOCAL}
