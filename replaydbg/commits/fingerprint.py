"""The key of a question: equal only if everything is equal that is known to matter before anything runs.

Needs that show only during a run, such as the program's helpers, are in `depends`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import replaydbg
from replaydbg.commits.question import Question
from replaydbg.commits.repository import GitFailed, Repository, outside_environment
from replaydbg.config import load_settings
from replaydbg.log.reader import open_recording
from replaydbg.replay.find_python import find_python

_OF_A_SESSION_TEXT = """
_ SHLVL OLDPWD PWD COLUMNS LINES WINDOWID XDG_SESSION_ID TERM_SESSION_ID SSH_CLIENT SSH_CONNECTION SSH_TTY
SSH_AUTH_SOCK SSH_AGENT_PID GPG_TTY TMUX TMUX_PANE STY DBUS_SESSION_BUS_ADDRESS PYTEST_CURRENT_TEST
"""
OF_A_SESSION = frozenset(_OF_A_SESSION_TEXT.split())
"""Variables that differ between terminals: an interrupted search can be resumed in another one."""

_PACKAGES = (".dist-info", ".egg-info", ".egg-link", ".pth")


def parts_of(repository: Repository, question: Question) -> dict[str, str]:
    """Return a digest of each thing that all verdicts depend on, by its human-readable name."""
    asked = asdict(replace(question, jobs=1, hash_seed=0))
    program = (asked.pop("program"), [_outside_file(repository, word) for word in question.program])
    ends = (asked.pop("good"), asked.pop("bad"))
    facts: dict[str, object] = {
        "repository": (str(repository.root), repository.prefix, _replaced(repository)),
        "ends": ends,
        "program": program,
        "options": (asked, repr(load_settings({"quiet": True}))),
        "files copied with --with": [content(path) for path in question.taken_along],
        "recording": content(question.replay) if question.replay is not None else "",
        "environment": sorted((name, text) for name, text in outside_environment().items() if name not in OF_A_SESSION),
        "user": (os.getuid(), os.getgid()),
        "interpreter": _interpreter(question),
        "packages": _packages(),
        "version of replaydbg": _tool(),
    }
    return {name: _digest(json.dumps(fact, sort_keys=True, default=str)) for name, fact in facts.items()}


def key_of(parts: Mapping[str, str]) -> str:
    """Return the key of a question with these parts."""
    return _digest(json.dumps(parts, sort_keys=True))[:24]


def content(path: Path) -> str:
    """Return a digest of the content of a file or a tree."""
    whole = hashlib.sha256()
    for each in _files(path):
        whole.update(str(each.relative_to(path.parent)).encode("utf-8", "surrogateescape") + b"\0")
        whole.update(os.fsencode(each.readlink()) if each.is_symlink() else each.read_bytes())
    return whole.hexdigest()


def _files(path: Path) -> Iterable[Path]:
    if path.is_dir() and not path.is_symlink():
        return sorted(each for each in path.rglob("*") if each.is_symlink() or each.is_file())
    return [path]


def _outside_file(repository: Repository, word: str) -> str:
    """Return the content of a file named in the command line that is not part of the checkout."""
    path = repository.root / repository.prefix / word
    try:
        whole = path.resolve()
        return content(whole) if whole.is_file() and not whole.is_relative_to(repository.root) else ""
    except (OSError, ValueError):
        return ""


def _replaced(repository: Repository) -> str:
    """Return the objects that git replaces by others: these change the content of a commit."""
    try:
        return repository.ask("for-each-ref", "refs/replace")
    except GitFailed:
        return ""


def _interpreter(question: Question) -> list[object]:
    paths = [sys.executable]
    if question.replay is not None:
        with open_recording(question.replay) as recording:
            paths.append(find_python(str(question.replay), recording.header.python))
    files = [(path, os.path.realpath(path), _identity(Path(path))) for path in paths]
    return [sys.version, sys.prefix, tuple(sys.flags), sys.path[1:], files]


def _packages() -> list[tuple[str, list[str]]]:
    """Return the installed distributions, by the names of their metadata."""
    found = []
    for directory in dict.fromkeys(filter(None, sys.path[1:])):
        try:
            names = sorted(name for name in os.listdir(directory) if name.endswith(_PACKAGES))  # noqa: PTH208
        except OSError:
            continue
        found.append((directory, names))
    return found


def _tool() -> list[object]:
    """Return the identity of every file of this package: during development the version stays the same for long."""
    root = Path(replaydbg.__file__).parent
    own = (path for path in root.rglob("*") if path.suffix in (".py", ".so") and path.is_file())
    return [replaydbg.__version__, sorted((str(path.relative_to(root)), _identity(path)) for path in own)]


def _identity(path: Path) -> tuple[int, int]:
    try:
        about = path.stat()
    except OSError:
        return (0, 0)
    return (about.st_size, about.st_mtime_ns)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
