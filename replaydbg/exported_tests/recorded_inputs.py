"""The inputs of a recorded program that a test can give it again."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Conversation:
    """One connection that the program made."""

    host: str
    """The address to which it connected, as a number."""
    port: int
    """The port."""
    answers: tuple[bytes, ...]
    """The bytes that it received, cut where it sent something; without TLS."""
    speaks_first: bool
    """Whether the first answer came before the program had sent anything."""
    end: str
    """`open`, `closed` by the other side, `reset`, or the error with which the call of connect failed."""
    error: tuple[int, str] = (0, "")
    """Number and text of that error."""


@dataclass(slots=True)
class FoundInputs:
    """Inputs while the log is read."""

    work_files: dict[str, bytes] = field(default_factory=dict)
    """Contents of files below the working directory that the program named relatively, by that name."""
    served_files: dict[str, bytes | None] = field(default_factory=dict)
    """Contents of other files by absolute path; None: there was none, or the program wrote it."""
    listed: set[str] = field(default_factory=set)
    """Names below the working directory that the program listed, or asked for, and that existed."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Of these names the sizes that the program saw."""
    directories: set[str] = field(default_factory=set)
    """Directories below the working directory that existed."""
    stdin: bytearray = field(default_factory=bytearray)
    conversations: list[Conversation] = field(default_factory=list)
    hosts: dict[str, list[str]] = field(default_factory=dict)
    """Addresses of names that were looked up; none for one that was not found."""
    answers: dict[str, list[object]] = field(default_factory=dict)
    """By the name of a function what it returned: clocks, `os.urandom`."""
    seeds: list[bytes] = field(default_factory=list)
    """With what generators of `random` were seeded that got no seed."""
    gaps: dict[str, None] = field(default_factory=dict)
    """Sentences about what the test does not reproduce, in order."""


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """How the program was started, and how it ended."""

    recording: str
    """The name of its recording."""
    created: str
    """When it was recorded: ISO 8601."""
    kind: str
    """`script`, `module`, `command`, `directory`, or `test` for a test of pytest."""
    target: str
    """Path, name, text, or node id."""
    arguments: tuple[str, ...]
    cwd: str
    options: tuple[str, ...]
    """The interpreter's options."""
    environment: dict[str, str]
    """Variables that its own sources name."""
    module_directories: tuple[str, ...]
    """Directories below the working directory that PYTHONPATH named, relative to it."""
    absent: tuple[str, ...]
    """Variables that these sources read and that did not exist."""
    hash_seed: int
    status: int
    """Its exit code, or minus the number of the signal that ended it; of a test 0 or 1."""
    exception: str
    """The type of the exception that ended it; empty: none, or unknown."""
    message: str
    """The exception's text, if it is recorded."""
    seconds: float

    @property
    def has_failed(self) -> bool:
        """Whether it ended with an exception, or an exit code other than 0."""
        return self.status != 0 or bool(self.exception)
