"""The commit of the repository that a program is in, read from git's own files: git itself would take milliseconds."""

from __future__ import annotations

import os
import re
import stat

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/[^\0\n]{1,1000}")
_MOST_LINKS = 5
"""Number of references that are followed, each to the next one, as git does."""
_MOST = 1 << 22
"""Bytes of a file that are read: a list of all references can be long."""


def commit_of(directory: str) -> str:
    """Return the commit that is checked out in the repository of a directory; empty: it is in none, or unknown."""
    try:
        git = _git_directory(os.path.abspath(directory))  # noqa: PTH100 - pathlib takes longer than all of this
        return _commit(git) if git else ""
    except (OSError, ValueError):  # ValueError: a NUL in a name
        return ""


def _git_directory(directory: str) -> str:
    while True:
        found = f"{directory.rstrip('/')}/.git"
        if os.path.isdir(found):  # noqa: PTH112
            return found
        if os.path.isfile(found):  # noqa: PTH113 - of a further worktree, or a submodule
            kind, _, path = _read(found).partition(": ")
            return os.path.join(directory, path.strip()) if kind == "gitdir" else ""  # noqa: PTH118
        above = os.path.dirname(directory)  # noqa: PTH120
        if above == directory:
            return ""
        directory = above


def _commit(git: str) -> str:
    common = f"{git}/commondir"
    shared = os.path.join(git, _read(common).strip()) if os.path.isfile(common) else git  # noqa: PTH113,PTH118
    name = "HEAD"
    for _ in range(_MOST_LINKS):
        found = _value(git, shared, name)
        name = found.removeprefix("ref: ")
        if name == found:
            return found if _COMMIT.fullmatch(found) else ""
        if not _REF.fullmatch(name) or ".." in name:
            return ""
    return ""


def _value(git: str, shared: str, name: str) -> str:
    """Return what a reference is: a commit, or `ref: ` and the name of another one; empty: there is none."""
    for place in (git, shared):
        if os.path.isfile(f"{place}/{name}"):  # noqa: PTH113
            return _read(f"{place}/{name}").strip()
    for line in _read(f"{shared}/packed-refs").splitlines():
        commit, _, known = line.partition(" ")
        if known == name:
            return commit
    return ""


def _read(path: str) -> str:
    """Return the beginning of a file; empty: it is none, such as a pipe, which could wait for ever. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        with open(fd, "rb", closefd=False) as file:
            return file.read(_MOST).decode("utf-8", "replace")
    finally:
        os.close(fd)
