"""The JSON of a recording as it is written: its header and its end. `header_and_end` reads and checks it."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class NoteData(TypedDict):
    """A note on something that cannot be recorded."""

    kind: str
    text: str
    count: int


class InvariantData(TypedDict):
    """The result of an invariant at a snapshot."""

    name: str
    holds: bool | None
    """None: it could not be evaluated."""
    text: str


class SnapshotData(TypedDict):
    """A snapshot of the heap that was taken while recording."""

    number: int
    event: int
    name: str
    reason: str
    time_ns: int
    objects: int
    bytes: int
    is_cut: bool
    checks: list[InvariantData]


class SnapshotsData(TypedDict):
    """All snapshots of a run."""

    listed: list[SnapshotData]
    failed: int
    left_out: int
    pause_ns: int
    longest_pause_ns: int
    copies_ns: int
    bases: NotRequired[list[int]]
    """Numbers of snapshots that are not of this recording: others are stored as differences from them."""


class EndData(TypedDict):
    """How a recorded program ended: `end.json`."""

    status: int
    seconds: float
    cpu_seconds: float
    cpu_after: float
    cpu_between: float
    exception: NotRequired[str]
    reason: str | None
    events: int
    notes: list[NoteData]
    packages: dict[str, str]
    sources: dict[str, str]
    ok: bool
    snapshots: NotRequired[SnapshotsData | None]


class GateData(TypedDict):
    """A row of the gate table."""

    name: str
    shape: int
    kind: str


class ContinuedData(TypedDict):
    """The checkpoint from which a program has gone on, with a log of its own."""

    number: int
    """How many it has gone on from."""
    when: str
    events: int
    """The number of events in all logs before this one."""
    cpu_ms: int
    """CPU time of the process by then."""


class SecretsData(TypedDict):
    """How secrets are recorded."""

    kept: bool
    names: list[str]
    recipients: list[str]
    patterns: NotRequired[list[str]]


class HeaderData(TypedDict):
    """Facts that are known when a recorded program starts: `header.json`."""

    format: int
    tool: str
    created: str
    name: str
    kind: str
    target: str
    argv: list[str]
    orig_argv: list[str]
    cwd: str
    umask: NotRequired[int]
    commit: NotRequired[str]
    secrets: NotRequired[SecretsData]
    path0: str | None
    env: dict[str, str]
    hash_seed: int
    python: dict[str, object]
    platform: str
    signals: dict[str, str]
    fds: list[int]
    gates: list[GateData]
    gates_digest: str
    rows: NotRequired[list[list[object]]]
    real_ids: bool
    durable: bool
    run: NotRequired[str]
    checkpoints: NotRequired[dict[str, int]]
    continued: NotRequired[ContinuedData]
    chaos: int | None
    collector: list[int]
    ticks: NotRequired[str]
    group: NotRequired[str]
    process: NotRequired[int]
    outputs: NotRequired[list[str]]
    stdio: list[str]
    stdin_offset: NotRequired[int]
