"""Name what a test cannot reproduce of a recorded run."""

from __future__ import annotations

from replaydbg.events import linux
from replaydbg.events.records import Control, ControlKind, Event
from replaydbg.events.show import printable
from replaydbg.exported_tests.recorded_inputs import FoundInputs
from replaydbg.installed import is_installed
from replaydbg.log.reader import Recording

_CHILDREN = {
    "_posixsubprocess.fork_exec",
    "posix.fork",
    "posix.forkpty",
    "posix.posix_spawn",
    "posix.posix_spawnp",
    "posix.system",
    "posix.execv",
    "posix.execve",
}
_HARMLESS = (
    *("posix.stat", "posix.lstat", "posix.fstat", "posix.access", "posix.getcwd", "posix.mkdir", "posix.remove"),
    *("posix.unlink", "posix.rename", "posix.replace", "posix.rmdir", "posix.isatty", "posix.fsync", "posix._exit"),
    *("posix.get_terminal_size", "posix.close", "gc.", "sys.", "builtins.", "select.", "time.", "_datetime."),
    *("_signal.getsignal", "posix.DirEntry", "posix.ScandirIterator", "_locale.", "posix.device_encoding"),
    "replaydbg.",
)
"""How the names of calls begin whose results a test gives by itself, or that matter little."""
_INPUTS_OF_C = (
    *("libc.open", "libc.read", "libc.pread", "libc.recv", "libc.connect"),
    *("libc.getrandom", "libc.getentropy", "libc.gettimeofday", "libc.clock_gettime"),
)
_MOST_NAMED = 12


class GapFinder:
    """Follows what neither files, nor sockets, nor clocks are."""

    def __init__(self, found: FoundInputs) -> None:
        self._found = found
        self._threads = 0
        self._signals: dict[int, None] = {}
        self._others: dict[str, None] = {}
        self._in_c: dict[str, None] = {}

    def event(self, event: Event) -> None:
        """Follow a call that is no input of the test."""
        name, file = event.gate, event.site.file
        if name in _CHILDREN:
            self._found.gaps["the processes that it starts: they run with today's inputs"] = None
        elif name.startswith("_sqlite3."):
            self._found.gaps["databases of SQLite: the program uses today's"] = None
        elif name.startswith("libc."):
            if name.startswith(_INPUTS_OF_C):
                self._in_c[name.removeprefix("libc.")] = None
        elif name.startswith("mmap."):
            self._found.gaps["files that it maps into memory, which it reads without calls"] = None
        elif name in ("_signal.setitimer", "_signal.alarm"):
            self._found.gaps["when its timers fire"] = None
        elif _is_own(file) and not name.startswith(_HARMLESS):
            self._others[name] = None

    def control(self, control: Control) -> None:
        """Follow an entry that is no call."""
        kind = control.kind
        if kind is ControlKind.LANE_STARTED:
            self._threads += 1
        elif kind in (ControlKind.SIGNAL_INSIDE, ControlKind.SIGNAL_BETWEEN):
            self._signals[control.number or 0] = None
        elif kind is ControlKind.NO_MEMORY:
            self._found.gaps["memory allocations that failed"] = None

    def finish(self, recording: Recording, *, is_test: bool) -> None:
        """Put the gaps into the inputs."""
        gaps = self._found.gaps
        if self._threads:
            count = "1 thread" if self._threads == 1 else f"{self._threads:,} threads"
            gaps[f"the schedule of its threads ({count} besides the main one): a race may not show"] = None
        if self._signals:
            names = ", ".join(linux.SIGNALS.get(each, f"signal {each}") for each in list(self._signals)[:_MOST_NAMED])
            gaps[f"signals that arrived ({names})"] = None
        if self._in_c:
            names = ", ".join(list(self._in_c)[:_MOST_NAMED])
            gaps[f"what code in C reads by itself ({printable(names)})"] = None
        if self._others:
            names = ", ".join(_public(each) for each in list(self._others)[:_MOST_NAMED])
            more = " and others" if len(self._others) > _MOST_NAMED else ""
            gaps[f"the results of these calls, which are today's: {printable(names)}{more}"] = None
        if recording.damage:
            gaps["what comes after the damage in the recording"] = None
        if not is_test and (recording.end is None or recording.end.reason):
            gaps["what came after the recording ended: the program ran on, or was killed with the recorder"] = None
        if is_test and recording.end is not None and "pytest-randomly" in recording.end.packages:
            gaps[
                "the seeds that pytest-randomly sets: run the test with the seed that the recorded session printed"
            ] = None
        for note in recording.end.notes if recording.end is not None else ():
            what = "what this call did, which is not recorded: " if note.kind == "uncovered" else ""
            gaps[f"{what}{printable(note.text)}"] = None


def _is_own(file: str | None) -> bool:
    return file is not None and not file.startswith("<") and not is_installed(file)


def _public(gate: str) -> str:
    """Return the name by which programs call a function of a module in C."""
    return gate.replace("posix.", "os.", 1) if gate.startswith("posix.") else gate.removeprefix("_")
