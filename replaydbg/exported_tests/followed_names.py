"""Follow which names exist in the working directory of a program before it makes them itself."""

from __future__ import annotations

import os
import stat
from pathlib import PurePath

from replaydbg.events.records import Event
from replaydbg.events.values import StatResult
from replaydbg.exported_tests.recorded_inputs import FoundInputs
from replaydbg.installed import is_installed
from replaydbg.resources.event_values import argument, items

_ASKING = ("/genericpath.py", "<frozen genericpath>", "/pathlib.py", "/pathlib/_local.py", "/pathlib/__init__.py")
"""Modules of the standard library that ask for the program."""
_SYSTEM = ("/dev", "/proc", "/sys", "/run", "/usr", "/lib", "/etc/ssl", "/etc/pki")
_MOST_NAMED = 12


class Names:
    """Names of files, as the program uses them in the order of the log."""

    def __init__(self, start: str, found: FoundInputs, *, is_test: bool) -> None:
        """`start`: the working directory; `is_test`: of pytest, which runs in the project itself."""
        self._start, self._cwd = start, start
        self._found, self._is_test = found, is_test
        self._seen: set[str] = set()
        """Paths of which it is known whether they existed at the start: those that the program made did not."""
        self._made: set[str] = set()
        """Directories that the program made."""
        self._asked: dict[str, str] = {}
        """Paths outside of the test's directory of which the program asked whether they exist, with their names."""

    def event(self, event: Event) -> bool:
        """Follow a call; return whether it is one about names."""
        name = event.gate
        given = argument(event, 0, "path")
        if name == "posix.chdir":
            if not event.raised:
                self._moved(given)
        elif name in ("posix.listdir", "posix.scandir"):
            if not event.raised:
                self._listed(event, given)
        elif name in ("posix.stat", "posix.lstat", "posix.access"):
            self._status(event, given)
        elif name in ("posix.mkdir", "posix.symlink", "posix.rename", "posix.replace", "posix.link"):
            for each in (given, argument(event, 1)):
                if isinstance(each, str | bytes):
                    self._seen.add(self.path_of(each))
                    self._made.add(self.path_of(each))
        else:
            return False
        return True

    def path_of(self, given: str | bytes) -> str:
        """Return the absolute path of a name."""
        return os.path.normpath(os.path.join(self._cwd, os.fsdecode(given)))  # noqa: PTH118 - no file of ours

    def inside(self, path: str, named: str) -> str | None:
        """Return the name below the working directory; None: it was named absolutely, or leads out of it."""
        if self._is_test or named.startswith("/"):
            return None
        inside = os.path.relpath(path, self._start)
        return None if inside == ".." or inside.startswith("../") or "\0" in inside else inside

    def opened(self, path: str, named: str) -> None:
        """Follow that a file was opened: the directory that it is in exists."""
        self._seen.add(path)
        directory = os.path.dirname(path)  # noqa: PTH120 - no file of ours
        inside = self.inside(directory, named)
        if inside not in (None, ".") and directory not in self._seen:
            self._found.directories.add(str(inside))

    def exists(self, path: str, named: str) -> None:
        """Follow that a file was there which the program wanted to make."""
        inside = self.inside(path, named)
        if inside is None:
            self._asked[path] = named
        elif path not in self._seen:
            self._found.listed.add(inside)
        self._seen.add(path)

    def is_directory(self, path: str, named: str) -> bool:
        """Follow that a name was a directory; return whether the test can have it."""
        inside = self.inside(path, named)
        if inside is not None and inside != "." and path not in self._seen:
            self._found.directories.add(inside)
        return inside is not None

    def finish(self, sources: set[str]) -> None:
        """Name the paths of which the program asked whether they exist, and that the test cannot give it."""
        known = {*self._found.served_files, *self._made, *sources}
        above = {*_parents(self._start), *(each for path in sources for each in _parents(path))}
        left = [named for path, named in self._asked.items() if path not in known | above]
        if left:
            names = ", ".join(ascii(each) for each in left[:_MOST_NAMED])
            more = " and others" if len(left) > _MOST_NAMED else ""
            self._found.gaps[f"whether these exist, and their sizes, which are today's: {names}{more}"] = None

    def _moved(self, given: object) -> None:
        if isinstance(given, str | bytes):
            self._cwd = self.path_of(given)
            gap = f"the change of its working directory to {os.fsdecode(given)!a}, if that is not there"
            self._found.gaps[gap] = None

    def _status(self, event: Event, given: object) -> None:
        if not isinstance(given, str | bytes) or "dir_fd" in str(argument(event, 9, "dir_fd", "")):
            return
        path = self.path_of(given)
        if path in self._seen:
            return
        self._seen.add(path)
        inside = self.inside(path, os.fsdecode(given))
        if inside is None and self._is_asked(event, path):
            self._asked[path] = os.fsdecode(given)
        if event.raised or event.outcome is False or inside in (None, "."):
            return
        is_directory = isinstance(event.outcome, StatResult) and stat.S_ISDIR(event.outcome.mode)
        (self._found.directories if is_directory else self._found.listed).add(str(inside))
        if isinstance(event.outcome, StatResult) and not is_directory:
            self._found.sizes[str(inside)] = event.outcome.size

    def _is_asked(self, event: Event, path: str) -> bool:
        """Whether the program itself asks for a path that is neither the system's nor made by it."""
        file = event.site.file or "<"
        asks = file.endswith(_ASKING) or not (file.startswith("<") or is_installed(file))
        is_made = any(each in self._made for each in _parents(path))
        return asks and not (is_made or is_installed(path) or path.startswith(_SYSTEM))

    def _listed(self, event: Event, given: object) -> None:
        directory = os.fsdecode(given) if isinstance(given, str | bytes) else "."
        path = self.path_of(directory)
        if is_installed(path + "/") or is_installed(event.site.file or ""):
            return  # of the importer, or what a package looks for
        inside = self.inside(path, directory)
        if inside is None or event.gate == "posix.scandir":
            self._found.gaps[f"the names in the directory {directory!a}, and their order"] = None
            return
        self._found.gaps[f"the order of the names in the directory {directory!a}"] = None
        self._found.directories.add(inside)
        for each in items(event.outcome):
            name = os.fsdecode(each) if isinstance(each, str | bytes) else ""
            whole = f"{path}/{name}"
            if name not in ("", ".", "..") and not {"/", "\0"} & {*name} and whole not in self._seen:
                self._seen.add(whole)
                self._found.listed.add(os.path.normpath(f"{inside}/{name}"))


def _parents(path: str) -> list[str]:
    return [path, *map(str, PurePath(path).parents)]
