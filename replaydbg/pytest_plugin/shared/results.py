"""The result of a test that was kept: written beside its recording, read by every process that shows it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replaydbg.classes import asdict, dataclass, replace
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.marks_of_tests import PhaseRaised
from replaydbg.store.private import open_private

SCHEMA_VERSION = 2
_LONGEST = 200


def shortened(text: str) -> str:
    """Return a value or a source line as results have it: at most 200 characters."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception that a test failed with."""

    type: str
    """The name of its type, as in a traceback; empty: none was raised (a strict xfail that passes)."""
    message: str
    """Its text; the first 2,000 characters."""
    file: str
    """The file in which it was raised."""
    line: int
    """The line at which it was raised."""
    own_file: str
    """The file of the frame in the test, or of the one nearest to it."""
    own_line: int
    """The line of that frame."""
    phase: str
    """`setup`, `call` or `teardown`."""
    event: int
    """Number of events when it was caught."""

    @classmethod
    def at(cls, event: int, raised: PhaseRaised) -> Failure:
        """Return the failure that was marked after so many events."""
        return cls(
            type=raised.type,
            message=raised.message,
            file=raised.file,
            line=raised.line,
            own_file=raised.own_file,
            own_line=raised.own_line,
            phase=raised.phase,
            event=event,
        )


@dataclass(frozen=True, slots=True)
class Written:
    """The last write of a name in the line that failed."""

    name: str
    """A variable, or an attribute or item that it leads to."""
    value: str
    """Its value at the failure."""
    where: str
    """The line that wrote it."""
    source: str
    """The source text of that line."""
    moment: str
    """Its moment, in the form that every command accepts."""


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A value that an earlier test left behind."""

    name: str
    """A variable of a module, or an attribute or item that it leads to."""
    value: str
    """Its value when the failing test begins; empty: it is not there."""
    alone: str
    """Its value then without the earlier tests; empty: it is not there."""
    test: str
    """The pytest node id of the test that wrote it."""
    where: str
    """The line that wrote it."""
    source: str
    """The source text of that line."""
    moment: str
    """Its moment, in the form that every command accepts."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """The line after which the failing line's assertion became false."""

    what: str
    """The assertion as text."""
    where: str
    """The line."""
    source: str
    """The source text of that line."""
    moment: str
    """Its moment, in the form that every command accepts."""
    values: tuple[str, ...]
    """The parts of the assertion, before and after the line."""


@dataclass(frozen=True, slots=True)
class Examination:
    """Results of an examination, for the fields of `Result` with these names; None: not known yet."""

    is_examined: bool | None = None
    """True: no more results follow."""
    verified: bool | None = None
    """Whether a replay agreed to the end."""
    verification: str | None = None
    """Why it did not agree."""
    left_out: int | None = None
    """Number of earlier tests that are not in the recording."""
    leftovers: str | None = None
    """Where it differed without them; empty: this cannot be determined."""
    events: int | None = None
    """Number of events, if tests were left out."""
    size: int | None = None
    """Size of the recording, if tests were left out."""
    writes: tuple[Written, ...] | None = None
    """The last write of each name in the failing line."""
    left_behind: tuple[LeftBehind, ...] | None = None
    """Values that earlier tests left behind; the failure depends on at least one of them."""
    reproduced_by: tuple[str, ...] | None = None
    """The pytest node ids of the fewest tests with which it fails in the same way, itself the last; empty: unknown."""
    wrong: Wrong | None = None
    """The result of a bisection."""
    problem: str | None = None
    """Why these could not be found."""
    page: str | None = None
    """The name of the file with a page about the failure; empty: there is none."""
    no_page: str | None = None
    """Why there is none, although one was wanted."""

    def known(self) -> dict[str, Any]:
        """Return the fields that are known, to replace those of another one or of a `Result`."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value is not None}

    def with_later(self, later: Examination) -> Examination:
        """Return both; of what both know, the later one."""
        return replace(self, **later.known())


@dataclass(frozen=True, slots=True)
class ExaminedLine:
    """A line of the examining process: results for one of its recordings."""

    number: int
    """The index of the recording, from 0."""
    found: Examination
    """The results."""

    def as_text(self) -> str:
        """Return it as JSON, in one line."""
        found = {name: value for name, value in asdict(self.found).items() if value is not None}
        return json.dumps({"number": self.number, "found": found})


def read_examined(line: str) -> ExaminedLine:
    """Return what the examining process has written in a line. Raises ValueError."""
    # Imported here and below: writing a result does not need it.
    from replaydbg.pytest_plugin.shared.json_reader import read_as

    return read_as(ExaminedLine, line)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a kept test."""

    nodeid: str
    """As pytest names it."""
    attempt: int
    """0 for the first one."""
    outcome: str
    """`failed`; `interrupted`: Ctrl-C or `pytest.exit` ended the session in it; `crashed`: the process ended in it."""
    failure: Failure | None
    """The exception, if there was one."""
    size: int
    """Size of the recording in bytes, without shared blocks."""
    events: int
    """Number of events in it."""
    sealing: float
    """Seconds to write it, while the session went on."""
    is_examined: bool = False
    """Whether all following fields are known."""
    verified: bool | None = None
    """Whether a replay agreed to the end; None: it was not tried, or took too long."""
    verification: str = ""
    """Why it did not agree, or was not tried."""
    left_out: int = 0
    """Number of earlier tests that are not in the recording: it did the same without them."""
    leftovers: str = ""
    """Where it differed without them, if it did: then they are in the recording."""
    writes: tuple[Written, ...] = ()
    """The last write of each name in the failing line."""
    left_behind: tuple[LeftBehind, ...] = ()
    """Values that earlier tests left behind; the failure depends on at least one of them."""
    reproduced_by: tuple[str, ...] = ()
    """The pytest node ids of the fewest tests with which it fails in the same way, itself the last; empty: unknown."""
    wrong: Wrong | None = None
    """The result of a bisection, if requested, and if the line is an assertion."""
    problem: str = ""
    """Why these could not be found."""
    hash_seed: int = 0
    """The seed of string hashes."""
    kept: float = 0.0
    """When it was kept, in seconds since the epoch: an earlier session may have left a directory with the same name."""
    unwritten: str = ""
    """Why there is no recording; empty: there is one."""
    page: str = ""
    """The name of the file, beside the recording, with a page about the failure; empty: there is none."""
    no_page: str = ""
    """Why there is none, although one was wanted."""
    processes: int = 0
    """Number of processes that it started and that are recorded, too, in the group `rec.rdbgs` beside the recording."""
    schema_version: int = SCHEMA_VERSION
    """Grows when a field changes its meaning or is removed."""

    def with_examination(self, examination: Examination) -> Result:
        """Return the same with the results of an examination."""
        return replace(self, **examination.known())


def write_result(directory: Path, result: Result, hide: Callable[[bytes], bytes] = bytes) -> None:
    """Write `meta.json` atomically; `hide` masks secrets in it. Raises OSError."""
    path = directory / shared_names.META
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open_private(partial) as file:
        file.write(hide((json.dumps(asdict(result), indent=1) + "\n").encode()).decode())
    partial.replace(path)


def parse_result(text: str) -> Result:
    """Return the result in `meta.json`. Raises ValueError, with the reason."""
    from replaydbg.pytest_plugin.shared.json_reader import read_as

    return read_as(Result, text)
