"""Follow which names exist in the working directory of a program before it makes them itself."""

from __future__ import annotations

import os
import stat

from replaydbg.events.records import Event
from replaydbg.events.values import StatResult
from replaydbg.exported_tests.recorded_inputs import FoundInputs
from replaydbg.installed import is_installed
from replaydbg.resources.event_values import argument, items


class Names:
    """Names of files, as the program uses them in the order of the log."""

    def __init__(self, start: str, found: FoundInputs, *, is_test: bool) -> None:
        """`start`: the working directory; `is_test`: of pytest, which runs in the project itself."""
        self._start, self._cwd = start, start
        self._found, self._is_test = found, is_test
        self._seen: set[str] = set()
        """Paths of which it is known whether they existed at the start: those that the program made did not."""

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
        if event.raised or event.outcome is False or inside in (None, "."):
            return
        is_directory = isinstance(event.outcome, StatResult) and stat.S_ISDIR(event.outcome.mode)
        (self._found.directories if is_directory else self._found.listed).add(str(inside))

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
