"""Answers to questions and contents of files that the recording has, up to a moment.

A future is told the same again. What the recorded program itself had changed in between is forgotten, so that nothing
outdated is told.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.events.records import Event
from replaydbg.events.values import STAT_FIELDS, ContentRef, StatResult
from replaydbg.futures.layer.kept_files import NameKind
from replaydbg.futures.layer.past_files import PastFiles
from replaydbg.futures.mutations import changed_paths, opened_to_read
from replaydbg.gates.row import ASKS
from replaydbg.gates.table import OWN
from replaydbg.log.coding.codec import encode_value
from replaydbg.log.reader import Recording
from replaydbg.log.sources import sources_of
from replaydbg.resources.event_values import first, number_of

MOST_ANSWERS = 100_000
"""Answers that are passed on, the latest ones."""
MOST_CONTENT = 64 << 20
"""Bytes of all files together."""

_ANSWER = struct.Struct("=cIIIB")
_FILE = struct.Struct("=cIQ")
_ASKED = frozenset(row.full_name for row in OWN if row.flags & ASKS)
_READS = frozenset({"_io.FileIO.read", "_io.FileIO.readall", "_io.FileIO.readinto", "posix.read"})
_MOVES = frozenset({"_io.FileIO.seek", "posix.lseek", "posix.pread", "posix.readv", "posix.preadv"})
_CLOSES = frozenset({"_io.FileIO.close", "posix.close"})


class KnownOutside:
    """Collects what a recording knows, event by event."""

    def __init__(self, recording: Recording, event: int) -> None:
        """Read the whole log. `event`: the first one that may differ."""
        self._recording, self._event = recording, event
        self._gates = {gate.name: number for number, gate in enumerate(recording.header.gates, 1)}
        self.answers: dict[tuple[int, bytes], tuple[bool, bytes]] = {}
        """By gate and coded arguments: whether it was raised, and the coded outcome."""
        self.files: dict[str, bytes] = {}
        """Contents by absolute path."""
        self._keys: dict[str, set[tuple[int, bytes]]] = {}
        """By path, which answers are about it."""
        self._later: set[str] = set()
        """Paths that the recorded run changed after the moment: what it was told from then on is no answer."""
        self._reading: dict[int, tuple[str, bytearray]] = {}
        """By descriptor, the file that is being read from its beginning, and what was read of it."""
        self._past = PastFiles(recording, event, self.files)
        for entry in recording.events():
            self._past.add(entry)
            if isinstance(entry, Event):
                self._add(entry)
        for path, source in (sources_of(recording) | library_sources(recording)).items():
            self._add_source(path, source)

    def _add(self, event: Event) -> None:
        paths = [self._absolute(each) for each in changed_paths(event)]
        for path in paths:
            self._change(path, event)
        if event.gate in _ASKED and event.gate in self._gates:
            self._answer(event)
        self._follow(event)

    @property
    def written(self) -> list[int]:
        """The events before the moment whose bytes the replay has to keep, ascending."""
        return self._past.written

    def _add_source(self, path: str, source: bytes) -> None:
        """Add a source file, and what its status is: a traceback looks at it before it shows a line.

        The recording has the content alone; a file of another size is another one, and is not asked.
        """
        absolute = self._absolute(path)
        known = self._past.names.by_path.get(absolute)
        if known is not None and known.is_touched:
            return
        self.files.setdefault(absolute, source)
        self._past.names.exists(absolute, NameKind.FILE)
        key = (self._gates.get("posix.stat", 0), encode_value((path,)))
        with suppress(OSError):
            status = Path(path).stat()
            if status.st_size == len(source):
                self.answers.setdefault(key, (False, encode_value(_as_result(status))))

    def _absolute(self, path: str) -> str:
        return self._past.absolute(path)

    def _change(self, path: str, event: Event) -> None:
        for each in (path, os.path.dirname(path)):  # noqa: PTH120
            if event.number >= self._event:
                self._later.add(each)
                continue
            for key in self._keys.pop(each, ()):
                self.answers.pop(key, None)
        if event.number < self._event:
            self.files.pop(path, None)

    def _answer(self, event: Event) -> None:
        arguments = event.arguments or ()
        about = [self._absolute(each) for each in arguments if isinstance(each, str)]
        is_later = event.number >= self._event
        try:
            coded = encode_value(tuple(arguments)) if event.arguments is not None else b""
            key = (self._gates[event.gate], coded)
            outcome = encode_value(event.outcome)
        except (TypeError, ValueError):
            return  # an object that no future could be given
        if is_later and (key in self.answers or self._later.intersection(about)):
            return
        self.answers.pop(key, None)  # it becomes the latest one
        self.answers[key] = (event.raised, outcome)
        for path in about:
            self._keys.setdefault(path, set()).add(key)

    def _follow(self, event: Event) -> None:
        """Follow what is read of files from their beginning to their end."""
        opened = opened_to_read(event)
        if opened is not None:
            number = number_of(first(event.outcome) if isinstance(event.outcome, tuple) else event.outcome)
            path = self._absolute(opened)
            if number >= 0 and not (event.number >= self._event and path in self._later):
                self._reading[number] = (path, bytearray())
            return
        number = number_of(first(event.arguments)) if event.arguments else -1
        if number not in self._reading:
            return
        if event.gate in _READS and not event.raised:
            self._read(event, number)
        elif (event.gate in _MOVES and event.gate != "_io.FileIO.seek") or event.gate in _CLOSES or _moves(event):
            self._reading.pop(number, None)

    def _read(self, event: Event, number: int) -> None:
        path, content = self._reading[number]
        data = event.filled if event.gate == "_io.FileIO.readinto" else event.outcome
        if isinstance(data, ContentRef):
            data = self._recording.content(data)
        if not isinstance(data, bytes) or len(content) + len(data) > MOST_CONTENT:
            self._reading.pop(number)
            return
        content += data
        if not data or event.gate == "_io.FileIO.readall":
            self.files[path] = bytes(content)
            self._reading.pop(number)

    def forget(self, changed: frozenset[str], numbers: frozenset[int]) -> None:
        """Forget what is known of paths, and of open descriptors."""
        for path in changed:
            for each in (path, os.path.dirname(path)):  # noqa: PTH120
                for key in self._keys.pop(each, ()):
                    self.answers.pop(key, None)
            self.files.pop(path, None)
        self._past.forget(changed, numbers)

    def encoded(self) -> bytes:
        """Return all of it as the core takes it."""
        parts: list[bytes] = []
        latest = list(self.answers.items())[-MOST_ANSWERS:]
        for (gate, arguments), (raised, outcome) in latest:
            parts += [_ANSWER.pack(b"A", gate, len(arguments), len(outcome), int(raised)), arguments, outcome]
        left = MOST_CONTENT
        for path, content in self.files.items():
            if len(content) <= left:
                left -= len(content)
                name = os.fsencode(path)
                parts += [_FILE.pack(b"F", len(name), len(content)), name, content]
        return b"".join((*parts, self._past.encoded()))


def _as_result(status: os.stat_result) -> StatResult:
    names = [f"st_{name}" for name in STAT_FIELDS]
    return StatResult(*(getattr(status, name) for name in names))


def _moves(event: Event) -> bool:
    """Whether the offset of a file is another one than its end so far; `seek(0, 1)` only asks for it."""
    if event.gate != "_io.FileIO.seek":
        return False
    arguments = event.arguments or ()
    return tuple(arguments[1:]) != (0, 1)


def library_sources(recording: Recording) -> dict[str, bytes]:
    """Return the sources of modules of the standard library that the program imported, from the disk.

    They are shown in tracebacks. A recording does not have them: a replay needs the same Python, which has.
    """
    found: dict[str, bytes] = {}
    library = os.path.dirname(os.__file__)  # noqa: PTH120
    for answer in recording.world():
        folder, name = os.path.split(answer.path)
        if answer.raised or not name.endswith(".pyc") or os.path.basename(folder) != "__pycache__":  # noqa: PTH119
            continue
        path = os.path.join(os.path.dirname(folder), f"{name.partition('.')[0]}.py")  # noqa: PTH118,PTH120
        # A path comes from the recording, and may be somebody else's idea of one.
        is_of_library = path.startswith(f"{library}/") and os.path.normpath(path) == path
        if path not in found and is_of_library and "site-packages" not in path:
            with suppress(OSError):
                found[path] = Path(path).read_bytes()
    return found


def known_outside(
    recording: Recording, event: int, changed: frozenset[str] = frozenset(), numbers: frozenset[int] = frozenset()
) -> tuple[bytes, list[int]]:
    """Return what the recording knows before `event`, for the core; nothing if its log is damaged.

    With it come the events before whose bytes the replay has to keep: what the program wrote to files. `changed` are
    absolute paths that other processes have changed, `numbers` descriptors of open files that others have as well: of
    these nothing is known.
    """
    try:
        known = KnownOutside(recording, event)
        known.forget(changed, numbers)
        return known.encoded(), known.written
    except Corrupt:
        return b"", []
