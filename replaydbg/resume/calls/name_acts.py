"""What the program did itself to names of files before a moment, and when its calls in flight began.

A call in flight that makes or removes a name fails if it is made twice. Whether it was made is told from the age of
what is there, for which the log has the time at which such a call began. Time stamps of files are not exact, and there
may be others who make and remove names: whether a name was there before the call is taken from the log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from replaydbg.classes import NamedTuple
from replaydbg.events.records import Control, ControlKind, Entry, Event
from replaydbg.gates.others import CHANGE_NAMES
from replaydbg.log.entries.selected_events import PassedEvents
from replaydbg.resources.event_values import argument

MOST_NAMES = 10_000
"""How many last components of paths are remembered, those that were used last."""
MOST_ALIKE = 100
"""How many paths with the same last component."""

_BETWEEN_MARKS = 256
"""Events, see record_commit() in native/crossing/record.c."""


class NamedPath(NamedTuple):
    """A path as a call was given it."""

    path: object
    base: object
    """The descriptor of the directory to which it is relative; None: the working directory."""


class NameState(NamedTuple):
    """The program's own last act on a name."""

    is_made: bool
    """Whether the name was there after it."""
    time_ns: int
    """When it began: nanoseconds from the start of the program to the last clock mark; in a plan, since the epoch."""


class NameActs:
    """Reads the entries of a log in order, up to a moment."""

    def __init__(self) -> None:
        """Begin with an empty log."""
        self._names: dict[str, dict[str, NameState]] = {}
        """By the last component of a path, and by the path."""
        self._begun: dict[int, int] = {}
        self._marked = 0

    def add(self, entry: Entry) -> None:
        """Read the next entry."""
        if isinstance(entry, Control):
            if entry.kind is ControlKind.TIME and not self._is_regular(entry.after):
                self._begun[entry.lane] = entry.time_ns
            return
        self._begun.pop(entry.lane, None)
        if entry.raised:
            return
        if entry.gate in _CHDIR:
            self._forget_relative()
        elif entry.gate in _ACTS:
            made, removed = _ACTS[entry.gate](entry)
            for each, is_made in ((removed, False), (made, True)):
                if each is not None:
                    self._note(each, NameState(is_made, entry.time_ns))

    def _is_regular(self, after: int) -> bool:
        """Whether a clock mark is the one that the recorder makes each 256 events, before which no call begins."""
        is_regular = after % _BETWEEN_MARKS == 1 and after != self._marked
        self._marked = after
        return is_regular

    def _note(self, named: NamedPath, state: NameState) -> None:
        if not isinstance(named.path, str | bytes):
            return
        path = os.fsdecode(named.path)
        paths = self._names.pop(last_component(path), {})
        if named.base is not None:
            return  # it may be any of these
        paths.pop(path, None)
        paths[path] = state
        self._names[last_component(path)] = paths
        for each, most in ((paths, MOST_ALIKE), (self._names, MOST_NAMES)):
            if len(each) > most:
                del each[next(iter(each))]

    def _forget_relative(self) -> None:
        """Forget relative paths: the working directory is another one now."""
        absolute = {
            name: {path: state for path, state in paths.items() if path.startswith("/")}
            for name, paths in self._names.items()
        }
        self._names = {name: paths for name, paths in absolute.items() if paths}

    def add_passed(self, events: PassedEvents) -> None:
        """Read events of other gates."""
        for lane in events.by_lane:
            self._begun.pop(lane, None)

    def begun(self) -> Mapping[int, int]:
        """Return when the call in flight of a thread began, at the earliest: nanoseconds from the start, by thread.

        It is known of calls that make or remove names.
        """
        return dict(self._begun)

    def names(self, start_ns: int) -> Mapping[str, NameState]:
        """Return the last act on each name, by its path as the program gave it; with times since the epoch.

        `start_ns`: when the program started, nanoseconds since the epoch.
        """
        return {
            path: state._replace(time_ns=start_ns + state.time_ns)
            for paths in self._names.values()
            for path, state in paths.items()
        }


def last_component(path: str) -> str:
    """Return the last component of a path."""
    return path.rstrip("/").rpartition("/")[2]


_Change = tuple[NamedPath | None, NamedPath | None]
"""What was made, and what was removed."""


def _made(event: Event) -> _Change:
    return NamedPath(argument(event, 0, "path"), argument(event, 9, "dir_fd")), None


def _removed(event: Event) -> _Change:
    return None, NamedPath(argument(event, 0, "path"), argument(event, 9, "dir_fd"))


def _moved(event: Event) -> _Change:
    source = NamedPath(argument(event, 0, "src"), argument(event, 9, "src_dir_fd"))
    return NamedPath(argument(event, 1, "dst"), argument(event, 9, "dst_dir_fd")), source


def _linked(event: Event) -> _Change:
    name = "dir_fd" if event.gate == "posix.symlink" else "dst_dir_fd"
    return NamedPath(argument(event, 1, "dst"), argument(event, 9, name)), None


def _shared(event: Event) -> _Change:
    change = NamedPath(memory_path(argument(event, 0, "path")), None)
    return (None, change) if event.gate == "_posixshmem.shm_unlink" else (change, None)


def _semaphore(event: Event) -> _Change:
    return None, NamedPath(semaphore_path(argument(event, 0)), None)


def memory_path(name: object) -> str | None:
    """Return the file that Linux has for POSIX shared memory (shm_overview(7)); None: it is not known."""
    return f"/dev/shm/{os.fsdecode(name).lstrip('/')}" if isinstance(name, str | bytes) else None


def semaphore_path(name: object) -> str | None:
    """Return the file that Linux has for a POSIX semaphore (sem_overview(7)); None: it is not known."""
    return f"/dev/shm/sem.{os.fsdecode(name).lstrip('/')}" if isinstance(name, str | bytes) else None


_ACTS: dict[str, Callable[[Event], _Change]] = {
    **dict.fromkeys(("posix.mkdir", "posix.mkfifo", "posix.mknod", "posix.open", "_io.FileIO.__init__"), _made),
    **dict.fromkeys(("posix.rmdir", "posix.unlink", "posix.remove"), _removed),
    **dict.fromkeys(("posix.rename", "posix.replace"), _moved),
    **dict.fromkeys(("posix.link", "posix.symlink"), _linked),
    **dict.fromkeys(("_posixshmem.shm_open", "_posixshmem.shm_unlink"), _shared),
    "_multiprocessing.sem_unlink": _semaphore,
}
_CHDIR = frozenset({"posix.chdir", "posix.fchdir"})
GATES = (
    frozenset(_ACTS) | _CHDIR | {f"{module}.{name}" for module, names in CHANGE_NAMES.items() for name in names.split()}
)
"""The gates of which events are needed."""
