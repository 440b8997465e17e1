"""What a recording says about the run as a whole: its header, written before the start, and its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class PythonBuild:
    """The interpreter that ran the program."""

    version: str
    """As `platform.python_version()` gives it."""
    hexversion: int
    """`sys.hexversion`."""
    executable: str
    """Path of the interpreter."""
    prefix: str
    """`sys.prefix`."""
    cache_tag: str
    """`sys.implementation.cache_tag`."""
    soabi: str
    """What extension modules must match."""
    flags: tuple[str, ...]
    """The interpreter's options."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One row of the gate table that the recording was made with."""

    name: str
    """Such as `time.time`."""
    shape: int
    """Which parts its events have: 1 arguments, 2 digest, 4 filled buffer."""
    kind: str
    """`regular`, `irregular`, `unsupported` ..."""


@dataclass(frozen=True, slots=True)
class Header:
    """How the program was started. Everything that a replay must establish again."""

    format: int
    """The format number."""
    tool: str
    """The version of replaydbg that recorded."""
    created: str
    """When: ISO 8601, UTC."""
    name: str
    """The name that the recording was given, such as `run-12`."""
    kind: str
    """`script`, `module`, `command` or `directory`."""
    target: str
    """The script's path, the module's name or the command's text."""
    argv: tuple[str, ...]
    """`sys.argv` at the start."""
    orig_argv: tuple[str, ...]
    """`sys.orig_argv` at the start."""
    cwd: str
    """The working directory."""
    path0: str | None
    """What the interpreter puts first into `sys.path`; None where it finds that out by itself."""
    env: MappingProxyType[str, str]
    """The environment; bytes that are no text stand as lone surrogates."""
    hash_seed: int
    """The seed of string hashes."""
    chaos: int | None
    """The seed of uneven slices for threads; None for ordinary ones."""
    real_ids: bool
    """Whether `id()` gave addresses."""
    python: PythonBuild
    """The interpreter."""
    platform: str
    """The platform, in words."""
    stdio: tuple[str, ...]
    """What descriptors 0, 1 and 2 were: `tty`, `pipe`, `file`, `null`, `socket`, `closed`."""
    signals: MappingProxyType[str, str]
    """Signal number to disposition, where it was not the default."""
    fds: tuple[int, ...]
    """Descriptors above 2 that were inherited."""
    gates: tuple[GateRow, ...]
    """The gate table; the log counts its rows from 1."""
    gates_digest: str
    """Identifies the gate table."""
    raw: MappingProxyType[str, Any] = field(compare=False, repr=False)
    """The whole header as stored, fields unknown to this version included."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was met and cannot be recorded."""

    kind: str
    """Its kind, in a word."""
    text: str
    """What was met."""
    count: int
    """How often."""


@dataclass(frozen=True, slots=True)
class End:
    """How the program ended."""

    status: int
    """Its exit code, or minus the number of the signal that killed it."""
    seconds: float
    """Wall time."""
    cpu_seconds: float
    """Processor time."""
    reason: str | None
    """Why logging stopped early; None if it did not."""
    events: int
    """How many events were logged."""
    notes: tuple[Note, ...]
    """What was met that cannot be recorded."""
    packages: MappingProxyType[str, str]
    """Installed distributions: name to version."""
    sources: MappingProxyType[str, str]
    """Source files that were imported: path to content hash."""
    ok: bool
    """Whether the recording was sealed after the program had ended."""
    raw: MappingProxyType[str, Any] = field(compare=False, repr=False)
    """The whole end as stored."""
