"""Collect the contents of files and of the standard input from the calls that read them."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field

from replaydbg.errors import Corrupt
from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.events.values import ContentRef
from replaydbg.exported_tests.followed_names import Names
from replaydbg.exported_tests.recorded_inputs import FoundInputs
from replaydbg.installed import is_installed
from replaydbg.log.reader import Recording
from replaydbg.resources.event_values import argument, byte_count, error_number, first, integer, items, number_of

_DEVICES = ("/dev/", "/proc/", "/sys/", "/run/")
_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/etc/ssl/", "/etc/localtime", "/etc/mime.types", "/etc/pki/")
_TEMPORARY = ("/tmp/", "/var/tmp/")
_MOST_CONTENT = 64 << 20
"""Bytes of one file that a test can have."""
_READS = {
    "_io.FileIO.read",
    "_io.FileIO.readall",
    "_io.FileIO.readinto",
    "posix.read",
    "posix.readinto",
    "posix.readv",
}
_PREADS = {"posix.pread", "posix.preadv"}
_WRITES = {"_io.FileIO.write", "posix.write", "posix.writev", "posix.pwrite", "posix.ftruncate", "_io.FileIO.truncate"}


def received(recording: Recording, event: Event) -> bytes:
    """Return the bytes that a call read or received; none if they are missing."""
    # A call that can fill a buffer may have returned the bytes, if it got none.
    is_returned = event.filled is None or isinstance(event.outcome, bytes | ContentRef)
    value = event.outcome if is_returned else event.filled
    value = value[0] if isinstance(value, tuple) and value else value
    try:
        if isinstance(value, ContentRef):
            value = recording.content(value)
    except Corrupt:
        return b""
    if pieces := items(value):
        value = b"".join(each for each in pieces if isinstance(each, bytes))
    length = byte_count(event.outcome)
    return bytes(value[:length]) if isinstance(value, bytes | bytearray) else b""


@dataclass(slots=True)
class _Content:
    """A file, as far as the program read it."""

    data: bytearray = field(default_factory=bytearray)
    parts: list[tuple[int, int]] = field(default_factory=list)
    is_read: bool = False
    is_written: bool = False
    is_new: bool = False
    """Whether it was opened so that what it contained was lost, or there was nothing."""
    first_written: int | None = None
    """The lowest offset at which the program wrote: what is before is the original content."""
    length: int = 0
    """How long it was at least before the program wrote to it."""
    named: str = ""
    """The name by which the program opened it first."""

    def reaches(self, offset: int) -> None:
        """Note that the program moved there, as to the end of a file: it was at least that long."""
        if self.first_written is None and not self.is_new and offset <= _MOST_CONTENT:
            self.length = max(self.length, offset)

    def add_part(self, begin: int, end: int) -> None:
        """Note that bytes were read; a part that goes on where the last one ended is one with it."""
        if self.parts and self.parts[-1][1] == begin:
            self.parts[-1] = (self.parts[-1][0], end)
        else:
            self.parts.append((begin, end))


@dataclass(slots=True)
class _Opened:
    content: _Content | None
    """None: a file whose content is not for the test."""
    offset: int = 0


class FileReads:
    """Follows the calls for files in the order of the log."""

    def __init__(self, recording: Recording, found: FoundInputs, *, is_test: bool) -> None:
        """`is_test`: of pytest, which runs in the project itself, so all files are given at their paths."""
        self._recording, self._found, self._is_test = recording, found, is_test
        self._names = Names(recording.header.cwd, found, is_test=is_test)
        self._sources = set(recording.end.sources) if recording.end is not None else set()
        self._open: dict[int, _Opened] = {}
        self._stdin = _Opened(_Content(found.stdin))
        self._contents: dict[str, _Content] = {}

    def event(self, event: Event) -> bool:
        """Follow a call; return whether it is one for files."""
        name = event.gate
        if name in ("_io.FileIO.__init__", "posix.open"):
            self._opened(event)
        elif name in _READS or name in _PREADS:
            self._read(event, is_at=name in _PREADS)
        elif name in _WRITES:
            self._wrote(event)
        elif name in ("_io.FileIO.seek", "_io.FileIO.tell", "posix.lseek"):
            opened = self._of(number_of(argument(event, 0)))
            if opened is not None and not event.raised:
                opened.offset = integer(event.outcome)
                if opened.content is not None:
                    opened.content.reaches(opened.offset)
        elif name in ("_io.FileIO.close", "posix.close"):
            self._open.pop(number_of(argument(event, 0)), None)
        else:
            return self._names.event(event) or name.startswith("_io.FileIO.")
        return True

    def finish(self) -> None:
        """Put what was read into the inputs."""
        for path, content in self._contents.items():
            self._add(path, content)
        self._names.finish({*self._sources})

    def _of(self, number: int) -> _Opened | None:
        return self._open.get(number, self._stdin if number == 0 else None)

    def _opened(self, event: Event) -> None:
        given = argument(event, 0)
        number = number_of(first(event.outcome)) if event.gate.startswith("_io") else number_of(event.outcome)
        if not isinstance(given, str | bytes):
            return  # a descriptor that was opened before
        path = self._names.path_of(given)
        is_absent = event.raised and error_number(event) == errno.ENOENT
        if event.raised and not is_absent:
            self._refused(event, path, os.fsdecode(given))
            return
        content = self._content_of(path, os.fsdecode(given), event)
        if content is not None and not is_absent and _writes(event):
            content.is_written = content.is_new = True
        if not event.raised:
            self._open[number] = _Opened(content)
            if content is not None:
                self._names.opened(path, os.fsdecode(given))

    def _refused(self, event: Event, path: str, named: str) -> None:
        """Follow that a file could not be opened, though something of its name was there."""
        number = error_number(event)
        if number == errno.EEXIST or path.startswith((*_DEVICES, *_SYSTEM)) or is_installed(path):
            if number == errno.EEXIST:
                self._names.exists(path, named)
        elif number != errno.EISDIR or not self._names.is_directory(path, named):
            why = errno.errorcode.get(number, f"error {number}")
            self._found.gaps[f"that the file {named!a} cannot be opened ({why})"] = None

    def _content_of(self, path: str, named: str, event: Event) -> _Content | None:
        """Return the content to collect; None: the file is none of the test's inputs."""
        if argument(event, 3, "dir_fd") is not None and event.gate == "posix.open":
            self._found.gaps[f"the file {named!a}, which is opened relative to a directory's descriptor"] = None
            return None
        if path == "/dev/null":
            return None
        if path.startswith(_DEVICES):
            self._found.gaps[f"the device or system file {path!a}: it is that of the machine"] = None
            return None
        if path.endswith((".py", ".pyc")) or path in self._sources or is_installed(path):
            return None  # the program's own sources are today's
        if path.startswith(_SYSTEM):
            return None
        if path not in self._contents:
            self._contents[path] = _Content(named=named)
        return self._contents[path]

    def _read(self, event: Event, *, is_at: bool) -> None:
        opened = self._of(number_of(argument(event, 0)))
        if opened is None or event.raised:
            return
        data = received(self._recording, event)
        offset = integer(argument(event, 2)) if is_at else opened.offset
        if not is_at:
            opened.offset += byte_count(event.outcome) or 0
        content = opened.content
        if content is not None and content.first_written is not None:
            data = data[: max(content.first_written - offset, 0)]
        if content is None or content.is_new or (content.is_written and not data):
            return  # it reads what it wrote itself
        content.is_read = True
        if offset + len(data) > _MOST_CONTENT:
            self._found.gaps[f"the file {content.named!a} beyond its first 64 MiB"] = None
            return
        self._put(content, offset, data)

    def _put(self, content: _Content, offset: int, data: bytes) -> None:
        end = offset + len(data)
        known = content.data
        if len(known) < end:
            known.extend(bytes(end - len(known)))
        new = bytearray(data)
        for begin, stop in content.parts:
            if begin < end and offset < stop:  # what was read first stays
                both = slice(max(begin, offset), min(stop, end))
                new[both.start - offset : both.stop - offset] = known[both]
        if new != data:
            self._found.gaps[f"the file {content.named!a} changed during the run: it has its first content"] = None
        known[offset:end] = new
        content.add_part(offset, end)

    def _wrote(self, event: Event) -> None:
        opened = self._open.get(number_of(argument(event, 0)))
        if opened is None:
            return
        content = opened.content
        if content is not None:
            content.is_written = True
            at = opened.offset
            if "pwrite" in event.gate or "truncate" in event.gate:
                at = integer(argument(event, 2 if "pwrite" in event.gate else 1))
            content.first_written = at if content.first_written is None else min(at, content.first_written)
        if not event.raised and "pwrite" not in event.gate and "truncate" not in event.gate:
            opened.offset += byte_count(event.outcome) or 0

    def _add(self, path: str, content: _Content) -> None:
        data = bytes(content.data).ljust(content.length, b"\0") if content.is_read or content.length else None
        if _has_holes(content):
            self._found.gaps[f"the parts of the file {content.named!a} that the program did not read: zeros"] = None
        inside = self._names.inside(path, content.named)
        if data is None and content.is_written and path.startswith(_TEMPORARY):
            return  # it makes such a file anew, and often by another name
        if inside is not None:
            if data is not None and inside != ".":
                self._found.work_files[inside] = data
        elif "\0" in path:
            self._found.gaps[f"the file {content.named!a}: its name is not valid"] = None
        elif not self._is_test and not content.named.startswith("/"):
            self._found.gaps[f"the file {content.named!a}: its name leads out of the working directory"] = None
        else:
            self._found.served_files[path] = data


def _writes(event: Event) -> bool:
    """Whether a file is opened so that what it contained is lost, or new."""
    mode = argument(event, 1, "mode")
    if isinstance(mode, str):
        return mode[:1] in ("w", "x") or "w" in mode or "x" in mode
    return bool(integer(mode) & (linux.O_TRUNC | linux.O_EXCL))


def _has_holes(content: _Content) -> bool:
    end = 0
    for begin, stop in sorted([*content.parts, (content.length, content.length)]):
        if begin > end:
            return True
        end = max(end, stop)
    return False
