"""The dependencies of a verdict outside its commit: files, directories and modules that the program read.

The commit itself never changes. A verdict is reused only while all of its dependencies are unchanged.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from replaydbg.events.records import Control, ControlKind, Event
from replaydbg.log.reader import Recording, open_recording

CONTENT, NAMES, MODULES, PRESENCE = "content", "names", "modules", "presence"
"""The aspect of a path that matters: a file's bytes, a directory's entries, its importable entries, the kind of
file.
"""

MOST_HASHED = 64 << 20
"""Size in bytes above which a file is compared by its size and the time of its last change."""

CHANGING = "changed during the run"
"""The state of a file that another process changed during the run: it is equal to no later state."""

VOLATILE = ("/proc/", "/sys/", "/dev/")
"""Directories whose files change all the time."""
_MODULE_ENDINGS = (".py", ".so", ".pyd", ".pyc", ".egg-link", ".pth")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CHANGES = _names(
    """
    mkdir mkdirat mkfifo mknod remove rename renameat renameat2 replace rmdir symlink symlinkat link linkat
    unlink unlinkat truncate truncate64 chmod fchmodat chown lchown fchownat setxattr removexattr utime utimes
    utimensat vfs.delete creat creat64
    """
)
"""The paths that these events name are the program's output."""
_OPENS = _names("open open64 openat openat64 __open_2 __open64_2 __openat_2 __openat64_2 FileIO.__init__")
_LISTS = frozenset(("posix.listdir", "posix.scandir"))
_ASKING_MODULES = frozenset(("posix", "_io", "_sqlite3", "libc", "readline", "_ssl", "mmap"))
_STARTS = _names("fork forkpty vfork fork_exec posix_spawn posix_spawnp system execv execve")
_CONNECTS = _names("socket.connect socket.connect_ex connect")
_SQLITE_FOLLOWS = frozenset(("vfs.open", "vfs.access"))


class Dependency(NamedTuple):
    """One path outside the commit, and the aspect of it that matters."""

    aspect: str
    """CONTENT, NAMES, MODULES or PRESENCE."""
    path: str
    """An absolute path."""


@dataclass(slots=True)
class Dependencies:
    """All dependencies of one look at a commit."""

    states: dict[Dependency, str] = field(default_factory=dict)
    """The state of each dependency after the run, as returned by `state_of`."""
    unwatched: set[str] = field(default_factory=set)
    """Dependencies that cannot be compared, such as `other programs`."""


class States:
    """Computes the state of each dependency once."""

    def __init__(self) -> None:
        self._known: dict[Dependency, str] = {}

    def of(self, dependency: Dependency) -> str:
        """Return its present state."""
        found = self._known.get(dependency)
        if found is None:
            found = self._known[dependency] = state_of(dependency)
        return found


def state_of(dependency: Dependency) -> str:
    """Return a text that stays equal as long as this aspect of the path is unchanged."""
    path = dependency.path
    try:
        about = os.stat(path)  # noqa: PTH116 - a path of any form
        if stat.S_ISDIR(about.st_mode):
            return _directory(dependency)
        if not stat.S_ISREG(about.st_mode):
            return "special"
        return "file" if dependency.aspect == PRESENCE else content_of(Path(path), about)
    except (OSError, ValueError) as error:
        return type(error).__name__


def content_of(path: Path, about: os.stat_result | None = None) -> str:
    """Return a digest of a file's content. Raises OSError."""
    about = about or path.stat()
    if about.st_size > MOST_HASHED:
        return f"{about.st_size} {about.st_mtime_ns} {about.st_ino}"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _directory(dependency: Dependency) -> str:
    if dependency.aspect not in (NAMES, MODULES):
        return "directory"
    names = sorted(os.listdir(dependency.path))  # noqa: PTH208 - names alone
    if dependency.aspect == MODULES:
        names = [name for name in names if _is_importable(dependency.path, name)]
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _is_importable(directory: str, name: str) -> bool:
    return is_importable_name(name, lambda: os.path.isdir(os.path.join(directory, name)))  # noqa: PTH112, PTH118


def is_importable_name(name: str, is_folder: Callable[[], bool]) -> bool:
    """Whether an import may find it; the entries of a temporary directory change all the time."""
    if name == "__pycache__":
        return False
    return name.endswith(_MODULE_ENDINGS) or (name.isidentifier() and is_folder())


def of_run(recording: Path, ours: Path, began_ns: int) -> Dependencies:
    """Return the dependencies of a recorded run outside the directory `ours`; `began_ns` is the time before it began.

    Paths that the program wrote before it read them are its output, not dependencies.
    """
    found = Dependencies()
    with open_recording(recording) as opened:
        asked = _PathLog(opened.header.cwd, ours.resolve())
        for dependency in _imported(opened, asked):
            asked.look(dependency)
        for entry in opened.events():
            _take(entry, asked, found)
    found.states = {each: _state_then(each, asked, began_ns) for each in asked.found}
    return found


def loaded_extensions(recording: Recording) -> Iterator[str]:
    """Yield the paths of the compiled modules that a recorded program loaded, but for those of the standard library.

    A replay loads them from the disk, at the recorded paths.
    """
    for answer in recording.world():
        path = answer.path
        is_loaded = answer.operation == "stat" and not answer.raised and path.startswith("/")
        if is_loaded and path.endswith(".so") and "/lib-dynload/" not in path:
            yield path


def of_replay(recording: Path, root: Path, began_ns: int) -> Dependencies:
    """Return the dependencies of a replay of a commit's code: today's sources that are not below `root`."""
    with open_recording(recording) as opened:
        paths = opened.end.sources if opened.end is not None else {}
        asked = _PathLog("/", root)
        for path in paths:
            asked.look(Dependency(CONTENT, path))
    return Dependencies({each: _state_then(each, asked, began_ns) for each in asked.found})


def changed_since(states: Iterable[tuple[Dependency, str]], now: States) -> str:
    """Return the path of the first dependency whose state has changed; empty if there is none."""
    return next((each.path for each, then in states if then == CHANGING or now.of(each) != then), "")


class _PathLog:
    """Collects the paths that a program reads, in order."""

    def __init__(self, cwd: str, ours: Path) -> None:
        self.cwd = cwd
        self.found: dict[Dependency, None] = {}
        self.written: set[str] = set()
        self.made: set[str] = set()
        self._ours = str(ours)
        self._real: dict[str, str] = {}

    def look(self, dependency: Dependency) -> None:
        """Note that a path is read."""
        path = self._outside(dependency.path)
        if path and not self._is_written(path):
            self.found[dependency._replace(path=path)] = None

    def write(self, path: str, *, is_made: bool = False) -> None:
        """Note that a path is written, or made as a directory."""
        outside = self._outside(path)
        if outside:
            self.written.add(outside)
            if is_made:
                self.made.add(outside)

    def _outside(self, path: str) -> str:
        """Return the absolute path; empty for one in the worktree, and for paths that change all the time."""
        whole = os.path.normpath(os.path.join(self.cwd, path))  # noqa: PTH118
        if "\0" in whole or f"{whole}/".startswith(VOLATILE) or _is_below(whole, self._ours):
            return ""
        folder = os.path.dirname(whole)  # noqa: PTH120
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        return "" if _is_below(os.path.join(self._real[folder], os.path.basename(whole)), self._ours) else whole  # noqa: PTH118, PTH119

    def _is_written(self, path: str) -> bool:
        # Everything below a directory that the program made belongs to the program.
        return path in self.written or (bool(self.made) and any(each in self.made for each in _with_parents(path)))


def _with_parents(path: str) -> Iterator[str]:
    while path not in ("", "/"):
        yield path
        path = path.rpartition("/")[0]


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _imported(recording: Recording, asked: _PathLog) -> Iterator[Dependency]:
    """Yield what the import system read; the standard library belongs to the interpreter."""
    for path in recording.end.sources if recording.end is not None else ():
        yield Dependency(CONTENT, path)
    for answer in recording.world():
        path = answer.path
        if not path.startswith("/") or is_of_interpreter(path):
            continue
        if answer.operation == "listdir":
            yield Dependency(MODULES, path)
        elif answer.operation == "stat":
            yield Dependency(CONTENT if path.endswith(".so") else PRESENCE, path)
        elif answer.operation == "read" and not path.endswith(".pyc"):
            yield Dependency(CONTENT, path)


def is_of_interpreter(path: str) -> bool:
    """Whether a path belongs to the standard library, and so to the interpreter."""
    return "/lib/python3." in path and "/site-packages" not in path and "/dist-packages" not in path


def _take(entry: Event | Control, asked: _PathLog, found: Dependencies) -> None:
    if isinstance(entry, Control):
        if entry.kind is ControlKind.CHILD:
            found.unwatched.add("other programs that it starts")
        return
    module, _, name = entry.gate.partition(".")
    if name in _STARTS:
        found.unwatched.add("other programs that it starts")
    elif name in _CONNECTS:
        found.unwatched.add("the network")
    if module not in _ASKING_MODULES or not entry.arguments:
        return
    paths = [text for text in map(_as_path, entry.arguments) if text]
    if name == "FileIO.__init__" or (module in ("posix", "libc") and name in _OPENS):
        _take_open(entry, paths, asked)
    elif name == "chdir" and not entry.raised and paths:
        asked.look(Dependency(PRESENCE, paths[0]))
        asked.cwd = os.path.join(asked.cwd, paths[0])  # noqa: PTH118
    elif name in _CHANGES:
        for path in paths if not entry.raised else ():
            asked.write(path, is_made=name == "mkdir")
    elif module != "_sqlite3" or name in _SQLITE_FOLLOWS:
        aspect = NAMES if entry.gate in _LISTS else CONTENT
        for path in paths or (["."] if aspect == NAMES else []):
            asked.look(Dependency(aspect, path))


def _take_open(entry: Event, paths: list[str], asked: _PathLog) -> None:
    if not paths:
        return  # a descriptor
    path, flags = paths[0], next((each for each in entry.arguments or () if isinstance(each, int)), os.O_RDONLY)
    if entry.gate == "_io.FileIO.__init__":
        mode = next((each for each in (entry.arguments or ())[1:] if isinstance(each, str)), "r")
        reads, writes = "r" in mode, mode.strip("b") != "r"
    else:
        if "openat" in entry.gate:
            flags = next((each for each in (entry.arguments or ())[2:] if isinstance(each, int)), os.O_RDONLY)
        access = flags & os.O_ACCMODE
        is_new = bool(flags & (os.O_TRUNC | os.O_EXCL))
        reads, writes = not is_new and access != os.O_WRONLY, access != os.O_RDONLY or bool(flags & os.O_CREAT)
    if reads:
        asked.look(Dependency(CONTENT, path))
    if writes and not entry.raised:
        asked.write(path)


def _as_path(value: object) -> str:
    if isinstance(value, bytes):
        return os.fsdecode(value)
    return value if isinstance(value, str) else ""


def _state_then(dependency: Dependency, asked: _PathLog, began_ns: int) -> str:
    """Return the state that the program saw, or CHANGING if another process changed it since."""
    if dependency.aspect == CONTENT and dependency.path not in asked.written:
        try:
            about = os.stat(dependency.path)  # noqa: PTH116
            if stat.S_ISREG(about.st_mode) and about.st_ctime_ns >= began_ns:
                return CHANGING
        except (OSError, ValueError):
            return state_of(dependency)
    return state_of(dependency)
