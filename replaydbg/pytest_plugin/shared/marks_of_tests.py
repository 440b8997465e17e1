"""Marks of the recorded process about its tests: JSON in the log, and in a file that the launcher reads meanwhile.

The recorded process imports it, so it imports next to nothing; `mark_reader` reads such marks.
"""

from __future__ import annotations

from replaydbg.classes import dataclass

RandomState = tuple[int, tuple[int, ...], float | None]
"""The state of the module `random`, as `random.getstate` returns it."""

REPORT_LEFT_OUT = '{"report": "left out"}'
"""The answer to the question before the report of a failure is made, in a recording that was made smaller."""


@dataclass(frozen=True, slots=True)
class AttemptBegun:
    """An attempt of a test begins."""

    node: str
    """Its pytest node id."""
    slug: str
    """The name of its directory."""
    attempt: int
    """0 for the first one."""
    seed: int
    """The seed of string hashes."""
    crash: bool
    """Whether its recording is kept if the process ends in it."""


@dataclass(frozen=True, slots=True)
class PhaseRaised:
    """A phase of the test raised an exception, or failed without one."""

    type: str
    """The name of its type; empty: none was raised."""
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


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The attempt has ended."""

    keep: bool
    """Whether its recording is kept."""
    outcome: str
    """`passed`, `skipped`, `failed` or `interrupted`."""
    failure: int
    """The index of the exception that made it fail first, from 0; -1: it did not fail."""


@dataclass(frozen=True, slots=True)
class TestAsked:
    """The question before each test: is it left out? It has what the answer depends on."""

    __test__ = False

    needs: tuple[int, ...]
    """The tests, numbered from 1, that set up fixtures which exist when it begins."""
    before: int = 0
    """Number of earlier tests with the same node id."""
    is_worker: bool = False
    """Whether a worker of pytest-xdist runs it."""
    random: RandomState | None = None
    """The state of the module's generator; None: unchanged since the previous test began."""


def mark_fields(mark: AttemptBegun | PhaseRaised | AttemptEnded) -> dict[str, object]:
    """Return the fields of a mark. `dataclasses.asdict` would copy them."""
    return {name: getattr(mark, name) for name in mark.__slots__}
