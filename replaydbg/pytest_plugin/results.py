"""What is known of a test that was kept: written beside its recording, read by whoever shows it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from replaydbg.pytest_plugin import shared_names
from replaydbg.store.private import open_private

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception that a test failed with."""

    type: str
    """Its type's name, as a traceback has it; empty: none was raised (a strict xfail that passes)."""
    message: str
    """Its text; the first 2,000 characters."""
    file: str
    """Where it was raised."""
    line: int
    """Where it was raised."""
    own_file: str
    """Where in the test, or what is nearest to it, it came from."""
    own_line: int
    """The line there."""
    phase: str
    """`setup`, `call` or `teardown`."""
    event: int
    """How many events there were when it was seen."""


@dataclass(frozen=True, slots=True)
class Written:
    """The last write of a name in the line that failed."""

    name: str
    """A variable, or an attribute or item that it leads to."""
    value: str
    """What it is at the failure."""
    where: str
    """The line that wrote it."""
    source: str
    """Its text."""
    moment: str
    """When, as every command takes it."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """The line after which what the failing line claims was false."""

    what: str
    """What was false, in words."""
    where: str
    """The line."""
    source: str
    """Its text."""
    moment: str
    """When it ran, as every command takes it."""
    values: tuple[str, ...]
    """What the claim is made of, before and after it."""


@dataclass(frozen=True, slots=True)
class Result:
    """A kept test."""

    nodeid: str
    """As pytest names it."""
    attempt: int
    """0 for the first one."""
    outcome: str
    """`failed`; `interrupted`: Ctrl-C or `pytest.exit` ended the session in it; `crashed`: the process ended in it."""
    failure: Failure | None
    """The exception, if there was one."""
    size: int
    """Of the recording, in bytes; blocks that it shares are not counted."""
    events: int
    """How many it has."""
    sealing: float
    """Seconds that making it took, beside the session."""
    is_examined: bool = False
    """Whether all that follows is known."""
    verified: bool | None = None
    """Whether a replay agreed to its end; None: it was not tried, or took too long."""
    verification: str = ""
    """Why it did not agree, or was not tried."""
    left_out: int = 0
    """So many of the tests before it are not in the recording: it did the same without them."""
    leftovers: str = ""
    """Where it went another way without them, if it did: then they are in the recording."""
    writes: tuple[Written, ...] = ()
    """The last write of each name in the failing line."""
    wrong: Wrong | None = None
    """What a bisection has found, if one was asked for, and the line claims something."""
    problem: str = ""
    """Why those could not be found."""
    hash_seed: int = 0
    """The seed of string hashes."""
    kept: float = 0.0
    """When it was kept, in seconds since the epoch: an earlier session may have left the same directory."""
    unwritten: str = ""
    """Why there is no recording; empty: there is one."""
    schema_version: int = field(default=SCHEMA_VERSION)
    """Grows when a field changes its meaning or goes."""

    def with_examination(self, told: dict[str, Any]) -> Result:
        """Return the same with what an examination has found."""
        writes = tuple(Written(**each) for each in told.get("writes", ()))
        return replace(self, **told | {"writes": writes, "wrong": _wrong(told.get("wrong"))})


def write_result(directory: Path, result: Result) -> None:
    """Write `meta.json` as a whole. Raises OSError."""
    path = directory / shared_names.META
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open_private(partial) as file:
        file.write(json.dumps(asdict(result), indent=1) + "\n")
    partial.replace(path)


def parse_result(text: str) -> Result:
    """Return what `meta.json` holds. Raises ValueError."""
    try:
        data = json.loads(text)
        failure = Failure(**data.pop("failure")) if data.get("failure") else None
        data.pop("failure", None)
        writes = tuple(Written(**each) for each in data.pop("writes"))
        return Result(**data | {"wrong": _wrong(data["wrong"])}, failure=failure, writes=writes)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no description of a kept test: {error}") from error


def _wrong(data: dict[str, Any] | None) -> Wrong | None:
    return Wrong(**data | {"values": tuple(data["values"])}) if data else None
