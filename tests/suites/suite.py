"""A suite: whose tests, what they need, and how they are called."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Suite:
    """A row of the table."""

    name: str
    # What it is good for here.
    does: str
    # Pinned; its tests come from its source distribution.
    distribution: str
    # What the tests need besides it; pinned.
    requires: tuple[str, ...] = ()
    # For pytest, from the root of the source distribution: files and options.
    arguments: tuple[str, ...] = ("tests",)
    # Node ids, or the beginnings of some, of tests that are left out, and why: they need a network, or fail by chance.
    left_out: Mapping[str, str] = field(default_factory=dict)
    # The same of tests that end otherwise when they are recorded, and why. No reason outlives its difference.
    differs: Mapping[str, str] = field(default_factory=dict)
    # Workers of pytest-xdist; 0: none.
    workers: int = 0

    @property
    def package(self) -> str:
        """The name of the distribution."""
        return self.distribution.partition("==")[0]

    @property
    def version(self) -> str:
        return self.distribution.partition("==")[2]
