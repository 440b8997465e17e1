"""How the tests of two runs ended, and which of them ended otherwise."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ABSENT = "not run"
"""In the place of an outcome, where only one of the two runs has the test."""

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


@dataclass(frozen=True, slots=True)
class Difference:
    """A test that ended differently."""

    test: str
    plain: frozenset[str]
    recorded: frozenset[str]

    @property
    def is_unsteady(self) -> bool:
        """One outcome at least was seen in both: whatever decides, it is not the recording alone."""
        return bool(self.plain & self.recorded)

    def __str__(self) -> str:
        return f"{self.test}: {' or '.join(sorted(self.plain))} plain, {' or '.join(sorted(self.recorded))} recorded"


def read_outcomes(path: Path) -> dict[str, str]:
    """The outcome of each test by node id; empty: the run wrote none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    # A parameter without a name of its own may be shown with its address.
    return {_ADDRESS.sub("0x", str(test)): str(outcome) for test, outcome in data.items()}


def differences(plain: Mapping[str, str], recorded: Mapping[str, str]) -> list[Difference]:
    """The tests whose outcome is not the same, by name."""
    return merged_differences([plain], [recorded], plain.keys() | recorded.keys())


def merged_differences(
    plain: Iterable[Mapping[str, str]], recorded: Iterable[Mapping[str, str]], tests: Iterable[str]
) -> list[Difference]:
    """Those of `tests` that did not end in one and the same way in all runs of both kinds."""
    plain, recorded = list(plain), list(recorded)
    found = []
    for test in sorted(tests):
        sides = [frozenset(each.get(test, ABSENT) for each in runs) for runs in (plain, recorded)]
        if len(sides[0] | sides[1]) > 1:
            found.append(Difference(test, *sides))
    return found


def reason_for(test: str, reasons: Mapping[str, str]) -> str | None:
    """The reason of the longest entry that `test` begins with."""
    return next((reasons[each] for each in sorted(reasons, key=len, reverse=True) if test.startswith(each)), None)


def counted(outcomes: Mapping[str, str]) -> str:
    """`600 passed, 3 skipped`."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in Counter(outcomes.values()).most_common()) or "none"
