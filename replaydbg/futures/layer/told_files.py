"""What a recording shows of files, without what its program changed: who was told what of which path."""

from __future__ import annotations

import os
import posixpath
import stat

from replaydbg.events.records import Event
from replaydbg.events.values import DirectoryEntry, StatResult
from replaydbg.futures.layer.kept_files import LayerNames, NameKind
from replaydbg.log.reader import Recording
from replaydbg.resources.event_values import argument, error_number
from replaydbg.resources.follow import ResourceHistory

_ENOENT, _EEXIST = 2, 17


class ToldFiles:
    """Collects it, event by event. `PastFiles` adds what the program changes."""

    def __init__(self, recording: Recording) -> None:
        self._history = ResourceHistory(recording, ())
        self.names = LayerNames()
        self._is_past = True
        """Whether the moment has not come."""
        self._later: set[str] = set()
        """Paths that the recorded run changed after the moment."""
        self._scan: tuple[str, list[str]] | None = None

    def absolute(self, path: str | bytes) -> str:
        """Return the absolute path of one that the program has named last."""
        found = self._history.state.absolute(path)
        return found if isinstance(found, str) else os.fsdecode(path)

    # ---- what an event says ----

    def _path(self, event: Event, index: int = 0, name: str = "path", base: str = "dir_fd") -> str | None:
        given = argument(event, index, name)
        if not isinstance(given, str | bytes) or not given:
            return None
        path = self._history.state.absolute(given, argument(event, 99, base))
        return path if isinstance(path, str) else None

    def _changes(self, path: str) -> bool:
        """Whether a change of `path` is one of the past. A later one is noted: what is seen of it then is outdated."""
        if not self._is_past:
            self._later.add(path)
        return self._is_past

    def _sees(self, path: str) -> bool:
        """Whether what is seen of `path` was so at the moment."""
        return self._is_past or (path not in self._later and self._known(path) in (NameKind.UNKNOWN, NameKind.OTHER))

    def _known(self, path: str) -> NameKind:
        known = self.names.by_path.get(path)
        return known.kind if known is not None else NameKind.UNKNOWN

    def _exists(self, path: str, kind: NameKind, status: StatResult | None = None) -> None:
        if self._sees(path):
            self.names.exists(path, kind, status)

    def _raised(self, event: Event) -> None:
        path = self._path(event) or self._path(event, 0, "src", "src_dir_fd")
        number = error_number(event)
        if path is None or event.gate not in _NAMING:
            return
        if number == _ENOENT and self._sees(path) and event.gate not in ("posix.rename", "posix.replace"):
            self.names.is_absent(path)
        elif number == _EEXIST:
            self._exists(path, NameKind.OTHER)

    # ---- what it was told ----

    def _status(self, event: Event) -> None:
        path, found = self._path(event), event.outcome
        if path is None or not isinstance(found, StatResult):
            return
        if stat.S_ISLNK(found.mode):
            self._exists(path, NameKind.OTHER, found)
        elif event.gate == "posix.lstat" or self._known(path) is not NameKind.LINK:
            self._exists(path, _kind_of(found.mode), found)

    def _access(self, event: Event) -> None:
        path = self._path(event)
        if path is None or not self._sees(path):
            return
        if event.outcome is True:
            self.names.exists(path, NameKind.OTHER)
        elif argument(event, 1, "mode") == os.F_OK:
            self.names.is_absent(path)

    def _read_link(self, event: Event) -> None:
        path, target = self._path(event), event.outcome
        if path is not None and isinstance(target, str | bytes):
            self._exists(path, NameKind.LINK)
            known = self.names.by_path.get(path)
            if known is not None and known.kind in (NameKind.LINK, NameKind.OTHER) and not known.is_touched:
                known.kind, known.target = NameKind.LINK, os.fsdecode(target)

    def _directory(self, event: Event) -> str | None:
        given = argument(event, 0, "path")
        if isinstance(given, int):
            found = self._history.state.directory(given)
            return found if isinstance(found, str) else None
        return self._path(event) if given is not None else self._here()

    def _here(self) -> str | None:
        cwd = self._history.state.names.cwd
        return cwd if isinstance(cwd, str) else None

    def _is_as_it_was(self, directory: str) -> bool:
        return self._is_past or not any(posixpath.dirname(each) == directory for each in self._later)

    def _list(self, event: Event) -> None:
        path, found = self._directory(event), event.outcome
        if path is not None and isinstance(found, list | tuple) and self._is_as_it_was(path):
            self.names.listed(path, tuple(os.fsdecode(each) for each in found if isinstance(each, str | bytes)))

    def _scan_begins(self, event: Event) -> None:
        path = self._directory(event)
        self._scan = (path, []) if path is not None and self._scan is None else None

    def _scan_goes_on(self, event: Event) -> None:
        if self._scan is None:
            return
        path, found = self._scan
        if isinstance(event.outcome, DirectoryEntry):
            found.append(os.fsdecode(_text(event.outcome.name)))
        elif event.outcome is None:
            if self._is_as_it_was(path):
                self.names.listed(path, tuple(found))
            self._scan = None

    def _entry(self, event: Event) -> None:
        entry = argument(event, 0)
        if not isinstance(entry, DirectoryEntry) or event.outcome is not True:
            return
        path = self._history.state.absolute(_text(entry.path))
        kind = {"is_dir": NameKind.DIRECTORY, "is_file": NameKind.FILE}.get(event.gate.rpartition(".")[2])
        if isinstance(path, str) and kind is not None:
            self._exists(path, kind)

    def _change_directory(self, event: Event) -> None:
        if (path := self._here()) is not None:
            self._exists(path, NameKind.DIRECTORY)


def _text(value: object) -> str | bytes:
    return value if isinstance(value, str | bytes) else ""


def _kind_of(mode: int) -> NameKind:
    if stat.S_ISDIR(mode):
        return NameKind.DIRECTORY
    return NameKind.FILE if stat.S_ISREG(mode) else NameKind.OTHER


_NAMING = frozenset(
    f"posix.{name}"
    for name in (
        "stat",
        "lstat",
        "open",
        "unlink",
        "remove",
        "rmdir",
        "mkdir",
        "readlink",
        "listdir",
        "rename",
        "replace",
    )
) | {"_io.FileIO.__init__"}
"""Gates whose errors show that the path in their first argument is there, or is not."""
