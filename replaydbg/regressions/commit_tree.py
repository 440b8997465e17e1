"""The files of commits, as git lists them: enough to answer what a replay asked of a worktree, without a checkout."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from replaydbg.commits.depends import States, is_importable_name
from replaydbg.commits.repository import Repository
from replaydbg.regressions.code_verdicts import CodeReads

_LINK, _SUBMODULE = "120000", "160000"
_MOST_FILES = 2_000_000
"""Number of files of all trees that are kept in memory: some 500 MB."""


@dataclass(frozen=True, slots=True)
class CommitTree:
    """The files of one commit."""

    name: str
    """The name of its tree: equal trees have equal names."""
    files: dict[str, str]
    """The name of the content of each file, by its path."""
    folders: dict[str, frozenset[str]]
    """The names of all entries of each directory, by its path; the root's is empty."""
    indirect: frozenset[str] = frozenset()
    """The symbolic links and submodules: what is behind them is not looked up."""
    attributes: str = ""
    """The content of all `.gitattributes` files: they decide how git writes files into a worktree."""
    _answers: dict[tuple[str, str], str] = field(default_factory=dict)

    def answer(self, question: str, path: str) -> str:
        """Return what a replay learns from a question about a path: equal texts mean equal replays."""
        known = self._answers.get((question, path))
        if known is None:
            known = self._answers[question, path] = self._answer(question, path)
        return known

    def _answer(self, question: str, path: str) -> str:
        parts = path.split("/") if path else []
        if not {"", ".", ".."}.isdisjoint(parts):
            path = os.path.normpath(path)
            if ".." in parts and (self.indirect or path.startswith("..")):
                return f"tree {self.name}"  # above what a link leads to is another directory
            path = "" if path == "." else path
        if self.indirect and any(each in self.indirect for each in _with_parents(path)):
            return f"tree {self.name}"
        if path in self.folders:
            names = self.folders[path]
            if question == "listdir":
                names = frozenset(filter(partial(self._is_importable, path), names))
            return "folder" if question in ("stat", "read") else _digest("\0".join(sorted(names)))
        content = self.files.get(path)
        if content is None:
            return "absent"
        # The importer's question about a module is whether it is there; an extension module is then loaded by its path.
        return "file" if question == "stat" and not path.endswith(".so") else content

    def _is_importable(self, folder: str, name: str) -> bool:
        whole = f"{folder}/{name}" if folder else name
        return is_importable_name(name, lambda: whole in self.folders or whole in self.indirect)


class CommitTrees:
    """The trees of commits, of which the last ones that were used are kept."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._trees: OrderedDict[str, CommitTree] = OrderedDict()
        self._files = 0

    def of(self, commit: str) -> CommitTree:
        """Return the tree of a commit, by its full name. Raises GitFailed."""
        tree = self._trees.pop(commit, None)
        if tree is None:
            tree = self._read(commit)
            self._files += len(tree.files)
        self._trees[commit] = tree
        while self._files > _MOST_FILES and len(self._trees) > 1:
            self._files -= len(self._trees.popitem(last=False)[1].files)
        return tree

    def _read(self, commit: str) -> CommitTree:
        name = self._repository.ask("rev-parse", f"{commit}^{{tree}}")
        files: dict[str, str] = {}
        folders: dict[str, set[str]] = {"": set()}
        indirect = set()
        for line in self._repository.run("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
            about, _, path = line.partition("\t")
            if not path:
                continue
            mode, _, content = about.split()
            if mode in (_LINK, _SUBMODULE):
                indirect.add(path)
            else:
                files[path] = content
            _add(folders, path)
        attributes = "".join(
            f"{path}={content}\0" for path, content in files.items() if path.rpartition("/")[2] == ".gitattributes"
        )
        frozen = {path: frozenset(names) for path, names in folders.items()}
        return CommitTree(name, files, frozen, frozenset(indirect), attributes)


def _add(folders: dict[str, set[str]], path: str) -> None:
    """Enter a path into the directories above it."""
    while path:
        folder, _, name = path.rpartition("/")
        is_known = folder in folders
        folders.setdefault(folder, set()).add(name)
        if is_known:
            return
        path = folder


def state_at(reads: CodeReads, tree: CommitTree, machine: States) -> str:
    """Return a digest of all that a verdict depends on, at a commit and on this machine as it is now."""
    return _digest("\n".join(_lines(reads, tree, machine)))


def _lines(reads: CodeReads, tree: CommitTree, machine: States) -> Iterator[str]:
    if reads.is_whole:
        yield f"tree {tree.name}"
    yield tree.attributes
    for question, path in reads.inside:
        yield tree.answer(question, path)
    for dependency in reads.outside:
        yield machine.of(dependency)


def _with_parents(path: str) -> Iterable[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
