"""Facts about the run as a whole: its header, written before the start, and its end."""

from __future__ import annotations

from types import MappingProxyType

from replaydbg.classes import NamedTuple, dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@dataclass(frozen=True, slots=True)
class PythonBuild:
    """The interpreter that ran the program."""

    version: str
    """The version as returned by `platform.python_version()`."""
    hexversion: int
    """`sys.hexversion`."""
    executable: str
    """Path of the interpreter."""
    prefix: str
    """`sys.prefix`."""
    cache_tag: str
    """`sys.implementation.cache_tag`."""
    soabi: str
    """The SOABI that extension modules must match."""
    flags: tuple[str, ...]
    """The interpreter's options."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One row of the gate table with which the recording was made."""

    name: str
    """Such as `time.time`."""
    shape: int
    """The parts of its events: 1 arguments, 2 digest, 4 filled buffer."""
    kind: str
    """`regular`, `irregular`, `unsupported` ..."""


class Resumption(NamedTuple):
    """One time that the program was resumed."""

    recording: str
    """The name of the recording that it continued."""
    event: int
    """The last event that was replayed; the program went live after it."""
    when: str
    """When the resumption began (ISO 8601, UTC)."""


class Branch(NamedTuple):
    """Where the recording of a forked child leaves its parent's."""

    process: int
    """The number of its parent in the group."""
    event: int
    """The number of the fork, in the recordings of both."""
    log: int
    """Bytes of the parent's event log that come before its own."""
    world: int
    """The same of the import world."""
    content: int
    """The same of the copies of large files."""


@dataclass(frozen=True, slots=True)
class Header:
    """How the program was started: everything that a replay must restore."""

    format: int
    """The format number."""
    tool: str
    """The version of replaydbg that recorded."""
    created: str
    """The time of the recording: ISO 8601, UTC."""
    name: str
    """The recording's name, such as `run-12`."""
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
    umask: int | None
    """Which permissions new files do not get when it starts; None: not known."""
    commit: str
    """The commit that was checked out in the program's repository; empty: it is in none, or it is unknown."""
    path0: str | None
    """The first entry of `sys.path` set by the interpreter; None if it determines that by itself."""
    env: MappingProxyType[str, str]
    """The environment; undecodable bytes are lone surrogates."""
    hash_seed: int
    """The seed of string hashes."""
    chaos: int | None
    """The seed of uneven slices for threads; None for ordinary ones."""
    collector: tuple[int, ...]
    """The collector's counts of the three generations before `site` is imported, and how many objects survived the last
    full collection. Empty: the counts begin at 0. Three numbers: all objects that are alive then have survived one."""
    ticks: str
    """How calls and jumps were counted on 3.11: `checks`, or empty for a trace function."""
    real_ids: bool
    """Whether `id()` returned real addresses."""
    durable: bool
    """Whether it was recorded to survive power loss."""
    python: PythonBuild
    """The interpreter."""
    platform: str
    """Description of the platform."""
    stdio: tuple[str, ...]
    """The kinds of descriptors 0, 1 and 2: `tty`, `pipe`, `file`, `null`, `socket`, `closed`."""
    signals: MappingProxyType[str, str]
    """Signal number to disposition, if it was not the default."""
    fds: tuple[int, ...]
    """Descriptors above 2 that were inherited."""
    gates: tuple[GateRow, ...]
    """The gate table; the log counts its rows from 1."""
    gates_digest: str
    """Identifies the gate table."""
    group: str
    """Identifies the group of processes that it is in; empty: it is in none."""
    process: int
    """Its number in the group; 0: it is in none."""
    outputs: tuple[str, ...]
    """Of the first process of a group, the identities of its standard output and error, as endpoints have them."""
    branch: Branch | None
    """For a forked child, where it leaves its parent's recording."""
    raw: MappingProxyType[str, Any] = field(compare=False, repr=False)
    """The whole header as stored, fields unknown to this version included."""

    @property
    def parent(self) -> str:
        """The name of the recording that this one continues; empty: none."""
        return self.resumptions[-1].recording if self.resumptions else ""

    @property
    def resumptions(self) -> tuple[Resumption, ...]:
        """The resumptions of the program, the oldest first. What has another shape is left out: nobody checks it."""
        resumed = self.raw.get("resumed")
        found = []
        for each in resumed if isinstance(resumed, list) else ():
            facts = each if isinstance(each, dict) else {}
            name, event, when = (facts.get(key) for key in ("from", "event", "when"))
            if isinstance(name, str) and isinstance(event, int) and isinstance(when, str):
                found.append(Resumption(name, event, when))
        return tuple(found)

    @property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments as they were given: `argv` lacks a module's name and a command's text."""
        return tuple(command_of(self.kind, self.target, self.argv))


def command_of(kind: str, target: str, argv: Sequence[str]) -> list[str]:
    """Return a program and its arguments as they were given, from the fields of its header."""
    leading = {"module": ["-m", target], "command": ["-c", target]}.get(kind, list(argv[:1]))
    return [*leading, *argv[1:]]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that occurred in the program and cannot be recorded."""

    kind: str
    """Its kind, in a word."""
    text: str
    """A description."""
    count: int
    """Number of occurrences."""


@dataclass(frozen=True, slots=True)
class End:
    """How the program ended."""

    status: int
    """Its exit code, or minus the number of the signal that killed it."""
    seconds: float
    """Wall time."""
    cpu_seconds: float
    """CPU time."""
    exception: str
    """The type of the exception that ended the program; empty: there was none, or it is unknown."""
    reason: str | None
    """Why logging stopped early; None if it did not."""
    events: int
    """Number of logged events."""
    notes: tuple[Note, ...]
    """Notes on what cannot be recorded."""
    packages: MappingProxyType[str, str]
    """Installed distributions: name to version."""
    sources: MappingProxyType[str, str]
    """Source files that were imported: path to content hash."""
    ok: bool
    """Whether the recording was sealed after the program had ended."""
    raw: MappingProxyType[str, Any] = field(compare=False, repr=False)
    """The whole end as stored."""
