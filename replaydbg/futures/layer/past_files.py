"""Follow the files of a recorded program up to a moment, and what later calls still show of them as they were then."""

from __future__ import annotations

import os
import posixpath
import stat
import struct
from collections.abc import Callable, Mapping

from replaydbg.events import linux
from replaydbg.events.records import Entry, Event
from replaydbg.futures.layer.kept_files import LayerFile, NameKind
from replaydbg.futures.layer.opened_files import OpenedThen
from replaydbg.futures.layer.told_files import ToldFiles
from replaydbg.log.reader import Recording
from replaydbg.resources.event_values import argument, integer, number_of
from replaydbg.resources.file_events import flags_of_mode
from replaydbg.resources.file_names import FileNode

_DIRECTORY = struct.Struct("=cI")
_MASK = struct.Struct("=cI")
_ENOENT, _EEXIST, _ENOTDIR = 2, 17, 20
_OWN_STREAMS = 2
"""The highest number of a standard stream."""
_USUAL_UMASK = 0o022
"""For recordings that do not show it."""


class PastFiles(ToldFiles):
    """Reads a log once."""

    def __init__(self, recording: Recording, event: int, contents: Mapping[str, bytes]) -> None:
        """`event`: the first one that may differ. `contents`: of files by their absolute paths, as far as known.

        `contents` are looked up while the log is read, before what the event at hand changes is taken out of it.
        """
        super().__init__(recording)
        self._event, self._contents = event, contents
        self.written: list[int] = []
        """Events whose bytes the replay keeps, ascending."""
        self._files: dict[int, LayerFile] = {}
        """By the identity of their nodes, which they hold."""
        self._databases: dict[str, str] = {}
        """Paths by the names that events of SQLite have."""
        self._opened_then: list[OpenedThen] = []
        self._cwd = ""
        self._umask = self._umask_then = _USUAL_UMASK if recording.header.umask is None else recording.header.umask
        """Now, and at the moment."""

    def add(self, entry: Entry) -> None:
        """Read the next entry."""
        if not isinstance(entry, Event):
            self._history.apply(entry)
            return
        if entry.number >= self._event and self._is_past:
            self._freeze()
        self._history.apply(entry)
        if entry.raised:
            self._raised(entry)
            return
        action = _ACTIONS.get(entry.gate)
        if action is not None:
            action(self, entry)

    # ---- opening, writing ----

    def _file(self, node: FileNode, path: str | None, content: bytes | None) -> LayerFile:
        """Return the file behind `node`; a new one begins with `content`."""
        file = self._files.get(id(node))
        if file is None:
            file = self._files[id(node)] = LayerFile(node, content)
            if content is None:
                file.resized(node.size)
            known = self.names.by_path.get(path or "")
            if known is not None and known.status is not None:
                file.mode, file.links = known.status.mode, known.status.nlink
        return file

    def _opened(self, event: Event, path: str, number: int, flags: int, mode: int) -> None:
        description = self._history.state.numbers.get(number)
        is_writing = bool(flags & linux.O_ACCMODE)
        if description is None or description.node is None or description.kind not in ("file", "directory"):
            return
        if description.kind == "directory" or not is_writing:
            is_directory = description.kind == "directory"
            self._exists(path, NameKind.DIRECTORY if is_directory else NameKind.FILE)
            return
        is_new = flags & linux.O_CREAT and flags & linux.O_EXCL
        if not self._is_past and path not in self._later:
            self._exists(posixpath.dirname(path), NameKind.DIRECTORY)
            if self._known(path) is NameKind.UNKNOWN:
                self._opened_later(path, description.node, is_new=bool(is_new), appends=bool(flags & linux.O_APPEND))
        if not self._changes(path):
            return
        node, content = description.node, self._contents.get(path)
        is_cut = bool(flags & linux.O_TRUNC or is_new or node.made == event.number)
        was_there = self._known(path) is NameKind.FILE
        file = self._file(node, path, b"" if is_cut else content)
        if is_cut:
            file.begin_anew(None if was_there else stat.S_IFREG | mode & ~self._umask)
        self.names.touch(path, NameKind.FILE, file)

    def _opened_later(self, path: str, node: FileNode, *, is_new: bool, appends: bool) -> None:
        """Conclude from what the recorded run opened after the moment what was there before."""
        if is_new or (appends and node.size == 0):
            self.names.is_absent(path)  # or empty, which makes no difference
        elif appends and isinstance(node.size, int):
            self.names.exists(path, NameKind.FILE)
            file = LayerFile(FileNode(path), None)
            file.resized(node.size)
            self._files[id(file.node)] = self.names.by_path[path].file = file

    def _open_call(self, event: Event) -> None:
        path, flags = self._path(event), integer(argument(event, 1, "flags"))
        if path is not None:
            self._opened(event, path, number_of(event.outcome), flags, integer(argument(event, 2, "mode", 0o777)))

    def _make_file(self, event: Event) -> None:
        path, mode = self._path(event), argument(event, 1)
        number = number_of(event.outcome[0]) if isinstance(event.outcome, tuple) and event.outcome else -1
        description = self._history.state.numbers.get(number)
        if path is None or description is None or description.origin.event != event.number:
            return  # on a descriptor, or one that an opener has made
        self._opened(event, path, number, flags_of_mode(mode) if isinstance(mode, str) else 0, 0o666)

    def _write(self, event: Event) -> None:
        description = self._history.state.numbers.get(number_of(argument(event, 0)))
        last = description.last_write if description is not None else None
        if description is None or description.node is None or last is None or last.event != event.number:
            return
        file = self._files.get(id(description.node))
        if not self._is_past and isinstance(description.node.path, str):
            self._later.add(description.node.path)
        if file is None or not self._is_past:
            return
        self._find(file)
        if last.digest is None:
            file.lost(description.node.size)
        else:
            file.written(event.number, last.offset, last.length)
            self.written.append(event.number)

    def _transfer(self, event: Event) -> None:
        names = ("out_fd",) if event.gate == "posix.sendfile" else ("dst",)
        target = number_of(argument(event, 0 if names == ("out_fd",) else 1, names[0]))
        description = self._history.state.numbers.get(target)
        file = self._files.get(id(description.node)) if description is not None else None
        if file is not None and self._is_past:
            file.lost(file.node.size)

    def _truncate(self, event: Event) -> None:
        description = self._history.state.numbers.get(number_of(argument(event, 0)))
        file = self._files.get(id(description.node)) if description is not None else None
        if file is not None and self._is_past:
            self._find(file)
            file.resized(file.node.size)

    def _find(self, file: LayerFile) -> None:
        if isinstance(file.node.path, str) and file.node.path not in self._later:
            file.found(self._contents.get(file.node.path))

    def _truncate_path(self, event: Event) -> None:
        path = self._path(event)
        if path is None:
            self._truncate(event)
        elif self._changes(path):
            node = self._history.state.names.node(path)
            file = self._file(node, path, self._contents.get(path))
            file.resized(node.size)
            self.names.touch(path, NameKind.FILE, file)

    # ---- SQLite ----

    def _open_database(self, event: Event) -> None:
        path = self._path(event)
        if path is None or not (isinstance(event.outcome, int) and event.outcome >= 0):
            return
        self._databases[posixpath.basename(path)] = path
        if not self._changes(path):
            return
        was_absent = self._known(path) is NameKind.ABSENT
        file = self._file(self._history.state.names.node(path), path, b"" if was_absent else self._contents.get(path))
        if was_absent:
            file.begin_anew(None)
        self.names.touch(path, NameKind.FILE, file)

    def _database(self, event: Event) -> LayerFile | None:
        path = self._databases.get(str(argument(event, 0)))
        known = self.names.by_path.get(path or "")
        return known.file if known is not None and self._is_past else None

    def _write_database(self, event: Event) -> None:
        file = self._database(event)
        if file is not None and event.outcome == 0:
            file.written(event.number, integer(argument(event, 1)), integer(argument(event, 2)))
            self.written.append(event.number)

    def _truncate_database(self, event: Event) -> None:
        file = self._database(event)
        if file is not None and event.outcome == 0:
            file.resized(integer(argument(event, 1)))

    def _size_database(self, event: Event) -> None:
        path = self._databases.get(str(argument(event, 0)), "")
        if not self._is_past and event.outcome == 0 and path and self._known(path) is NameKind.UNKNOWN:
            self.names.is_absent(path)  # or empty, which makes no difference
        file = self._database(event)
        if file is not None and event.outcome == 0 and file.base is None:
            file.found(b"")

    def _delete_database(self, event: Event) -> None:
        path = self._path(event)
        if path is not None and event.outcome == 0 and self._changes(path):
            self.names.removed(path)

    def _access_database(self, event: Event) -> None:
        path = self._path(event)
        if path is None or not self._sees(path) or not isinstance(event.outcome, int):
            return
        if event.outcome == 0:
            self.names.is_absent(path)
        elif event.outcome > 0:
            self.names.exists(path, NameKind.FILE)

    # ---- names ----

    def _mkdir(self, event: Event) -> None:
        path = self._path(event)
        if path is None:
            return
        if self._changes(path):
            self.names.touch(path, NameKind.MADE)
            self.names.by_path[path].mode = integer(argument(event, 1, "mode", 0o777)) & 0o1777 & ~self._umask
        elif self._known(path) is NameKind.UNKNOWN:
            self.names.is_absent(path)

    def _remove(self, event: Event) -> None:
        path = self._path(event)
        if path is None:
            return
        self._exists(path, NameKind.OTHER)
        if self._changes(path):
            self.names.removed(path)

    def _rename(self, event: Event) -> None:
        old, new = self._path(event, 0, "src", "src_dir_fd"), self._path(event, 1, "dst", "dst_dir_fd")
        if old is None or new is None:
            return
        self._exists(old, NameKind.OTHER)
        if self._changes(old) and self._changes(new):
            self.names.renamed(old, new)

    def _link(self, event: Event) -> None:
        old, new = self._path(event, 0, "src", "src_dir_fd"), self._path(event, 1, "dst", "dst_dir_fd")
        if old is None or new is None or not self._changes(new):
            return
        known = self.names.by_path.get(old)
        file = known.file if known is not None else None
        if file is not None:
            file.links += 1
        self.names.touch(new, NameKind.FILE if file is not None else NameKind.OTHER, file)

    def _symlink(self, event: Event) -> None:
        target, path = argument(event, 0, "src"), self._path(event, 1, "dst")
        if path is not None and isinstance(target, str | bytes) and self._changes(path):
            self.names.touch(path, NameKind.LINK, None, os.fsdecode(target))

    def _change_attributes(self, event: Event) -> None:
        path = self._path(event)
        known = self.names.by_path.get(path or "")
        mode = integer(argument(event, 1, "mode"), -1) if event.gate == "posix.chmod" else -1
        if known is None or path is None or not self._changes(path):
            return
        known.status = None
        if known.file is not None and mode >= 0:
            known.file.mode = stat.S_IFMT(known.file.mode) | mode & 0o7777
        elif mode >= 0:
            known.mode = mode & 0o7777

    def _mask(self, event: Event) -> None:
        self._umask = integer(argument(event, 0)) & 0o777

    # ---- the moment ----

    def _freeze(self) -> None:
        """The moment: keep what is open, where it is, and the directory that the program is in."""
        state = self._history.state
        self._is_past = False
        self._umask_then = self._umask
        for each in state.open:
            numbers = tuple(sorted(number for number in each.numbers if number > _OWN_STREAMS))
            if each.node is None or each.kind not in ("file", "directory"):
                continue
            if numbers and isinstance(each.offset, int) and isinstance(each.flags, int):
                self._opened_then.append(OpenedThen(each.kind, numbers, each.offset, each.flags, each.node))
        self._cwd = self._here() or ""
        if self._cwd:
            self.names.exists(self._cwd, NameKind.DIRECTORY)

    def forget(self, changed: frozenset[str], numbers: frozenset[int]) -> None:
        """Forget what is behind paths that other processes have changed, and open descriptors that they have as well.

        Raises nothing; the whole log was read.
        """
        if self._is_past:
            self._freeze()
        for path in changed:
            self.names.forget(path)
        self._opened_then = [each for each in self._opened_then if not numbers.intersection(each.numbers)]

    def encoded(self) -> bytes:
        """Return all of it as the core takes it, when the whole log was read."""
        if self._is_past:
            self._freeze()
        for each in self._opened_then:
            content = self._contents.get(each.path)
            if each.kind == "file" and id(each.node) not in self._files and content is not None:
                self._files[id(each.node)] = LayerFile(each.node, content)
        index = {id(file): number for number, file in enumerate(self._files.values())}
        for file in self._files.values():
            self._find(file)
        cwd = os.fsencode(self._cwd)
        parts = [_MASK.pack(b"U", self._umask_then), _DIRECTORY.pack(b"C", len(cwd)), cwd]
        parts += [file.encoded() for file in self._files.values()]
        parts += [name.encoded(path, index.get(id(name.file), -1)) for path, name in self.names.by_path.items()]
        parts += [each.encoded(index.get(id(self._files.get(id(each.node))), -1)) for each in self._opened_then]
        return b"".join(parts)


_ACTIONS: dict[str, Callable[[PastFiles, Event], None]] = {
    "posix.open": PastFiles._open_call,
    "_io.FileIO.__init__": PastFiles._make_file,
    **dict.fromkeys(
        ("posix.write", "posix.writev", "posix.pwrite", "posix.pwritev", "_io.FileIO.write"), PastFiles._write
    ),
    **dict.fromkeys(("posix.sendfile", "posix.copy_file_range", "posix.splice"), PastFiles._transfer),
    **dict.fromkeys(("_io.FileIO.truncate", "posix.ftruncate", "posix.posix_fallocate"), PastFiles._truncate),
    "posix.truncate": PastFiles._truncate_path,
    "_sqlite3.vfs.open": PastFiles._open_database,
    "_sqlite3.file.write": PastFiles._write_database,
    "_sqlite3.file.truncate": PastFiles._truncate_database,
    "_sqlite3.file.size": PastFiles._size_database,
    "_sqlite3.vfs.delete": PastFiles._delete_database,
    "_sqlite3.vfs.access": PastFiles._access_database,
    "posix.mkdir": PastFiles._mkdir,
    "posix.umask": PastFiles._mask,
    **dict.fromkeys(("posix.unlink", "posix.remove", "posix.rmdir"), PastFiles._remove),
    **dict.fromkeys(("posix.rename", "posix.replace"), PastFiles._rename),
    "posix.link": PastFiles._link,
    "posix.symlink": PastFiles._symlink,
    **dict.fromkeys(("posix.chmod", "posix.utime"), PastFiles._change_attributes),
    **dict.fromkeys(("posix.stat", "posix.lstat"), PastFiles._status),
    "posix.access": PastFiles._access,
    "posix.readlink": PastFiles._read_link,
    "posix.listdir": PastFiles._list,
    "posix.scandir": PastFiles._scan_begins,
    "posix.ScandirIterator.__next__": PastFiles._scan_goes_on,
    **dict.fromkeys(("posix.DirEntry.is_dir", "posix.DirEntry.is_file"), PastFiles._entry),
    **dict.fromkeys(("posix.chdir", "posix.fchdir"), PastFiles._change_directory),
}
