"""The facts about an image: the part of a log that it has replayed, and the machine and Python that it belongs to."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from replaydbg.classes import dataclass, replace
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.log.reader import Recording
from replaydbg.replay.find_python import find_python_and_core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_COMPARED = 1 << 20
"""Bytes before the end of the common part of two logs that are compared: their content depends on all before them."""


@dataclass(frozen=True, slots=True)
class LogPrefix:
    """The part of a log that was there when an image was made."""

    length: int
    """In bytes."""
    digest: str
    """Of its last bytes."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The facts about an image."""

    pid: int
    """The process id, which it has again when it is brought back."""
    event: int
    """The last event that its process had replayed."""
    cpu_ms: int
    """CPU time that its process had used, in milliseconds: about as much as the recorded program had until then."""
    prefixes: Mapping[str, LogPrefix]
    """Of the log and of the modules, by their names."""
    place: Mapping[str, str]
    """The machine, its kernel and the Python, see `this_place`."""
    files: Mapping[str, str]
    """The absolute paths of files that the process gets anew when it is brought back, by what they are."""
    parents: tuple[str, ...]
    """The names of the images without which it is incomplete, the newest first."""
    digests: Mapping[str, str]
    """The digests of its files, by their names."""

    def with_digests(self, digests: Mapping[str, str]) -> ImageFacts:
        """Return the same with the digests of its files."""
        return replace(self, digests=digests)

    def as_json(self) -> str:
        """Return it as the text of a file."""
        prefixes = {name: [each.length, each.digest] for name, each in self.prefixes.items()}
        facts = {"pid": self.pid, "event": self.event, "cpu_ms": self.cpu_ms, "prefixes": prefixes, "place": self.place}
        more = {"files": self.files, "parents": self.parents, "digests": self.digests}
        return json.dumps({**facts, **more}, indent=1)


def read_facts(text: str) -> ImageFacts:
    """Return what `as_json` has written. Raises ValueError if it is something else."""
    try:
        found = json.loads(text)
        return ImageFacts(
            int(found["pid"]),
            int(found["event"]),
            int(found["cpu_ms"]),
            {str(name): LogPrefix(int(length), str(digest)) for name, (length, digest) in found["prefixes"].items()},
            {str(name): str(value) for name, value in found["place"].items()},
            {str(name): str(value) for name, value in found["files"].items()},
            tuple(str(each) for each in found["parents"]),
            {str(name): str(value) for name, value in found["digests"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("it is not the description of an image") from error


def this_place(recording: Recording) -> dict[str, str]:
    """Return on what an image depends besides its files: machine, kernel, Python and core. Raises WrongPython."""
    system = os.uname()
    executable, core = find_python_and_core(str(recording.path), recording.header.python)
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = system.nodename
    return {
        "machine": machine,
        "kernel": f"{system.release} {system.machine}",
        "Python": _version(executable),
        "replaydbg": _version(core),
    }


def _version(path: str) -> str:
    status = Path(path).resolve().stat()
    return f"{path} of {status.st_size} bytes and {status.st_mtime_ns}"


def prefix_now(log: BinaryIO) -> LogPrefix:
    """Return the part of a log that is complete."""
    header = read_log_header(os.pread(log.fileno(), LOG_HEADER, 0))
    length = header.committed if header is not None else LOG_HEADER
    return LogPrefix(length, _digest(log, length))


def _digest(log: BinaryIO, length: int) -> str:
    first = max(LOG_HEADER, length - _COMPARED)
    return hashlib.blake2b(os.pread(log.fileno(), length - first, first), digest_size=16).hexdigest()


def mismatch(facts: ImageFacts, logs: Mapping[str, BinaryIO], place: Mapping[str, str]) -> str:
    """Return why an image does not fit a recording, as a clause; empty: it does."""
    for name, value in place.items():
        if facts.place.get(name) != value:
            return f"it was made with another {name}"
    for name, prefix in facts.prefixes.items():
        found = prefix_now(logs[name])
        if found.length < prefix.length or _digest(logs[name], prefix.length) != prefix.digest:
            return "it is of another recording"
    return ""
