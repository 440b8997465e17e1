"""The checked-in list of tests that are allowed to end differently, each with its reason."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).with_name("exceptions.toml")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Tests that may end differently under recording."""

    # A pattern (`*`, `?`) for the test's id.
    test: str
    # Versions such as "3.12"; empty: all.
    pythons: tuple[str, ...]
    # One sentence.
    reason: str


def read_exceptions(file: Path = FILE) -> tuple[Allowed, ...]:
    """The list as written; ValueError if an entry has no reason or something unknown."""
    entries = tomllib.loads(file.read_text()).get("exception", [])
    for entry in entries:
        if entry.keys() != {"test", "pythons", "reason"} or not entry["reason"].strip():
            raise ValueError(f"{file.name}: an exception has test, pythons and reason, not {entry!r}")
    return tuple(Allowed(entry["test"], tuple(entry["pythons"]), entry["reason"]) for entry in entries)


def allowing(test: str, python: str, exceptions: Sequence[Allowed]) -> Allowed | None:
    """The first exception for `test` on Python `python` ("3.12"), or None."""
    for allowed in exceptions:
        if fnmatchcase(test, allowed.test) and (not allowed.pythons or python in allowed.pythons):
            return allowed
    return None
