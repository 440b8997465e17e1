"""Types of recorded values besides plain Python data. Data only: nothing here imports or calls what it names."""

from __future__ import annotations

from replaydbg.classes import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Value: TypeAlias = "Any"
"""None, bool, a number, str, bytes, bytearray, tuple, list, dict, set, frozenset, or a class of this module."""


@dataclass(frozen=True, slots=True)
class TypeName:
    """The name of a type of the recorded program."""

    module: str
    """Its `__module__`."""
    qualname: str
    """Its `__qualname__`."""

    def __str__(self) -> str:
        return self.qualname if self.module == "builtins" else f"{self.module}.{self.qualname}"


@dataclass(frozen=True, slots=True)
class StructSequence:
    """A struct sequence such as `time.struct_time`."""

    type: TypeName
    """Its type."""
    values: tuple[Value, ...]
    """All its fields, including those that its length does not count."""


@dataclass(frozen=True, slots=True)
class StatResult:
    """The result of `os.stat` and its kin; times are nanoseconds since the epoch."""

    mode: int
    ino: int
    dev: int
    nlink: int
    uid: int
    gid: int
    size: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    blksize: int
    blocks: int
    rdev: int


STAT_FIELDS = StatResult.__match_args__
"""The names of the fields of a StatResult, in the order in which they are stored."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An outcome that is one of the crossing's own arguments."""

    index: int
    """Its index, from 0."""


@dataclass(frozen=True, slots=True)
class ExceptionValue:
    """An exception that a crossing raised."""

    type: TypeName
    """Its type."""
    args: tuple[Value, ...]
    """Its `args`."""
    os_error: tuple[Value, ...] | None = None
    """For an OSError: errno, strerror, filename, filename2, and a dict of other attributes if there are any."""


@dataclass(frozen=True, slots=True)
class ContentRef:
    """Bytes stored in the recording's content, apart from the event log."""

    offset: int
    """Their offset in the content, in bytes."""
    length: int
    """Number of bytes."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """An argument that is not data."""

    type_name: str
    """The name of its type."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A long str or bytes argument, of which only the beginning is stored."""

    length: int
    """Its full length, in bytes as stored (a str is stored as UTF-8)."""
    digest: bytes
    """8 bytes that identify the whole value."""
    start: str | bytes
    """Its beginning; its type is that of the whole value."""


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """An entry that `os.scandir` returned."""

    name: str | bytes
    """Its `name`."""
    path: str | bytes
    """Its `path`."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """The argument that is the caller's buffer: it has no value of its own, since its bytes are stored apart."""

    leaves: bool
    """Whether its bytes leave the program (the event has their digest), or it is filled (the event has the content)."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open file or a socket as an argument."""

    fd: int | None
    """Its descriptor; None if it was closed."""
