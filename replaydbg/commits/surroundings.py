"""The surroundings of a program in a worktree: its directory, its arguments, its import path."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from replaydbg.commits.repository import outside_environment
from replaydbg.launch.program_python import activated_python, is_this, named_python

_PYTHON = re.compile(r"python(\d(\.\d+)?)?")


class Surroundings:
    """Translates between the user's checkout and a worktree of it."""

    def __init__(
        self,
        root: Path,
        prefix: str,
        files: Iterable[str],
        *,
        base: Mapping[str, str] | None = None,
        installed: Sequence[Path] | None = None,
        copies: Path | None = None,
    ) -> None:
        """Translate for the checkout at `root`, in its directory `prefix`; `files` are those that git tracks there.

        `base` is the environment that is adapted for worktrees (default: our own), `installed` the directories of the
        checkout from which packages are imported (default: what this process imports), and `copies` where files of the
        checkout are that are taken along (default: in the checkout).
        """
        self._base = base
        self._given_installed = installed
        self._copies = copies or root
        self.root = root
        self.prefix = prefix
        self._files = frozenset(files)
        self._directories = {"."} | {str(parent) for file in self._files for parent in Path(file).parents}

    def directory(self, worktree: Path) -> Path:
        """Return the directory in which commands run in a worktree."""
        return worktree / self.prefix

    @property
    def files(self) -> frozenset[str]:
        """The tracked files, relative to the root."""
        return self._files

    def is_tracked(self, path: Path) -> bool:
        """Whether an absolute path is one of the repository's files or directories, in the checkout."""
        inside = self._inside(path)
        return inside is not None and (inside in self._files or inside in self._directories)

    def is_file_of_ours(self, path: str) -> bool:
        """Whether an absolute path is a file of the repository, in the checkout."""
        return self._inside(Path(path)) in self._files

    def environment(self, worktree: Path) -> dict[str, str]:
        """Return the environment of programs there: imports from the checkout come from the worktree instead."""
        found = outside_environment() if self._base is None else dict(self._base)
        found["PWD"] = str(self.directory(worktree))
        given = [word for word in found.get("PYTHONPATH", "").split(os.pathsep) if word]
        moved = [self._moved(word, worktree) for word in given]
        # Installed in place (`pip install -e`): the path configuration names the checkout.
        installed = [self._moved(str(path), worktree) for path in self.installed()]
        paths = [*moved, *(path for path in dict.fromkeys(installed) if path not in moved)]
        if paths:
            found["PYTHONPATH"] = os.pathsep.join(paths)
        return found

    def program(self, words: Sequence[str], worktree: Path) -> list[str]:
        """Return the program's command line for the worktree: paths into the checkout are translated."""
        return [self._moved(word, worktree) if os.path.isabs(word) else word for word in words]  # noqa: PTH117

    def take_along(self, paths: Iterable[Path], worktree: Path) -> None:
        """Copy files and directories of the checkout to the same places in the worktree. Raises OSError."""
        for path in paths:
            given = self._copies / path.relative_to(self.root)
            for each in _files_of(given):
                target = place_in(worktree, each.relative_to(self._copies))
                # The path may be a link: then its target is meant.
                shutil.copy2(each, target, follow_symlinks=each == given)

    def _moved(self, word: str, worktree: Path) -> str:
        path = Path(word)
        inside = self._inside(path) if path.is_absolute() and self.is_tracked(path) else None
        return word if inside is None else str(worktree / inside)

    def _inside(self, path: Path) -> str | None:
        # The root has its links resolved; a path may reach it by another name.
        for each in (path, path.resolve()):
            if each.is_relative_to(self.root):
                return str(each.relative_to(self.root))
        return None

    def installed(self) -> list[Path]:
        """Return the directories of the checkout from which an installed package would be imported."""
        if self._given_installed is not None:
            return list(self._given_installed)
        # The first is the directory of our own script.
        found = [Path(entry) for entry in sys.path[1:] if entry]
        for name, module in list(sys.modules.items()):
            if name.startswith("__editable__"):
                mapping: Any = getattr(module, "MAPPING", {})
                found += [Path(place).parent for place in mapping.values()] if isinstance(mapping, dict) else []
        return [path for path in found if self.is_tracked(path)]


def place_in(worktree: Path, inside: Path) -> Path:
    """Return the path for writing a file of the worktree, with its directory made. Raises OSError.

    A link in the commit must not lead out of the worktree: files outside belong to somebody else.
    """
    target = worktree / inside
    if ".." in inside.parts or not target.parent.resolve().is_relative_to(worktree.resolve()):
        raise PermissionError(f"{str(inside)!r} leads out of the worktree")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    return target


def _files_of(path: Path) -> Iterator[Path]:
    """Yield a file, or the files and links below a directory."""
    if not path.is_dir():
        yield path
        return
    for folder, names, files in os.walk(path):
        for name in [*files, *(name for name in names if Path(folder, name).is_symlink())]:
            yield Path(folder, name)


def without_python(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command line without a leading `python`: the running interpreter is used."""
    first = Path(words[0]).name if words else ""
    return tuple(words[1:] if _PYTHON.fullmatch(first) else words)


def other_python(words: Sequence[str]) -> str | None:
    """Return the interpreter of another environment, with which a command line is to run; None: with ours.

    It is the one that is given by its path, or that of the activated virtual environment, see `activated_python`.
    """
    rest = without_python(words)
    if len(rest) < len(words) and os.sep in words[0]:
        found = named_python(list(words))
    elif rest and (rest[0].startswith("-") or os.path.exists(rest[0])):  # noqa: PTH110
        found = activated_python()
    else:
        found = None  # a console script names its own
    return found if found is not None and not is_this(found) else None
