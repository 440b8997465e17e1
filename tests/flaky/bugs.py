"""The bugs, and what must be found out about each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug."""

    # The program's name without its ending.
    name: str
    # The package and the version that had it.
    package: str
    # Where it was reported or repaired.
    link: str
    # What it is, for the table.
    what: str
    # What makes the difference, as `told` of the inputs.
    told: set[str]
    # Gives the places (file, line of source) that must be told; one of them must be in `line`.
    places: Callable[[dict[str, Any]], list[tuple[str, str]]]
    # The end of the file's path, and what the line has in it.
    line: tuple[str, str]
    # Words for `hunt`.
    options: tuple[str, ...] = ()

    @property
    def program(self) -> Path:
        return _PROGRAMS / f"{self.name}.py"

    def wrong(self, facts: dict[str, Any]) -> str:
        """Why what `bisect recordings --json` told is wrong; empty if it is right."""
        if facts["outcome"] != "found":
            return f"nothing was found: {facts['reason']}"
        told = {each["told"] for each in facts["flip"]["inputs"]}
        if told != self.told:
            return f"the difference is not {self.told} but {told}"
        if self.place(facts) is None:
            return f"no place is {self.line}: {self.places(facts)}"
        return ""

    def place(self, facts: dict[str, Any]) -> tuple[str, str] | None:
        """The place that was to be found."""
        file, source = self.line
        found = (each for each in self.places(facts) if each[0].endswith(file) and source in each[1])
        return next(found, None)


def _of_inputs(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [_place(each) for each in facts["flip"]["inputs"]]


def _of_states(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [_place(each) for each in facts["states"]]


def _of_preemptions(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [_place(each) for each in facts["flip"]["preemptions"]]


def _place(each: dict[str, Any]) -> tuple[str, str]:
    return each["file"] or "", each["source"]


BUGS = (
    Bug(
        "marshmallow_fields",
        "marshmallow 3.19.0",
        "https://github.com/marshmallow-code/marshmallow/issues/988",
        "the fields of a record are dumped in the order of a set",
        {"hash seed"},
        _of_states,
        ("marshmallow/schema.py", "for field_name in field_names"),
    ),
    Bug(
        "cachetools_expiry",
        "cachetools 0.8.1",
        "https://github.com/tkem/cachetools/issues/29",
        "`get` raises if an item expires between its two looks at the clock",
        {"answer"},
        _of_inputs,
        ("cachetools/ttl.py", "__timer()"),
        ("-n", "400"),
    ),
    Bug(
        "injector_singleton",
        "injector 0.20.1",
        "https://github.com/python-injector/injector/pull/215",
        "two threads that ask for a singleton at once get two",
        {"switches of threads"},
        _of_preemptions,
        ("injector/__init__.py", ""),
        ("-n", "600", "--chaos"),
    ),
)
