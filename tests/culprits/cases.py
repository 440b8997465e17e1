"""The regressions: a package, its releases in order, a program that shows the bug, and where it is documented."""

from collections.abc import Sequence
from dataclasses import dataclass

_CACHETOOLS = (
    "3.1.0 3.1.1 4.0.0 4.1.0 4.1.1 4.2.0 4.2.1 4.2.2 4.2.4 5.0.0 5.1.0 5.2.0 5.2.1 5.3.0 5.3.1 5.3.2 5.3.3 5.4.0 5.5.0 "
    "5.5.1 5.5.2 6.0.0 6.1.0 6.2.0 6.2.1 6.2.2 6.2.3 6.2.4 6.2.5 6.2.6 7.0.0 7.0.1 7.0.2 7.0.3 7.0.4 7.0.5 7.0.6 7.1.0 "
    "7.1.1 7.1.2 7.1.3 7.1.4 7.1.5 7.1.6 7.1.7 7.1.8 7.2.0 7.2.1 7.2.2 7.2.3 7.2.4 7.2.5 7.2.6 7.2.7 7.2.8 7.3.0"
)
_CLICK = (
    "3.3 4.0 4.1 5.0 5.1 6.0 6.1 6.2 6.3 6.4 6.6 6.7 7.0 7.1 7.1.1 7.1.2 8.0.0 8.0.1 8.0.2 8.0.3 8.0.4 8.1.0 8.1.1 "
    "8.1.2 8.1.3 8.1.4 8.1.5 8.1.6 8.1.7 8.1.8 8.2.0 8.2.1"
)
_PYPARSING = (
    "2.2.1 2.2.2 2.3.0 2.3.1 2.4.0 2.4.1.1 2.4.2 2.4.3 2.4.4 2.4.5 2.4.6 2.4.7 3.0.0 3.0.1 3.0.2 3.0.3 3.0.4 3.0.5 "
    "3.0.6 3.0.7 3.0.8 3.0.9 3.1.0 3.1.1 3.1.2 3.1.3 3.1.4 3.2.0 3.2.1 3.2.2 3.2.3"
)
_MORE_ITERTOOLS = (
    "6.0.0 7.0.0 7.1.0 7.2.0 8.0.0 8.0.1 8.0.2 8.1.0 8.2.0 8.3.0 8.4.0 8.5.0 8.6.0 8.7.0 8.8.0 8.9.0 8.10.0 8.12.0 "
    "8.13.0 8.14.0 9.0.0 9.1.0 10.0.0 10.1.0 10.2.0 10.3.0 10.4.0 10.5.0 10.6.0 10.7.0 10.8.0 11.0.0"
)
_TOMLKIT = (
    "0.5.2 0.5.3 0.5.4 0.5.5 0.5.7 0.5.8 0.5.9 0.5.10 0.5.11 0.6.0 0.7.0 0.7.1 0.7.2 0.8.0 0.9.0 0.9.1 0.9.2 0.10.0 "
    "0.10.1 0.10.2 0.11.0 0.11.1 0.11.2 0.11.3 0.11.4 0.11.5 0.11.6 0.11.7 0.11.8 0.12.0 0.12.1 0.12.2 0.12.3 0.12.4 "
    "0.12.5 0.13.0 0.13.1 0.13.2 0.13.3 0.14.0"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One regression."""

    package: str
    """Its name on the package index."""
    releases: Sequence[str]
    """The releases that become commits, oldest first: the first is the good end, the last one the bad end."""
    culprit: str
    """The release that brought the bug."""
    bug: str
    """The failure, in a sentence."""
    source: str
    """Where it is reported."""
    unanswered: str = ""
    """Why one recording is not enough: what other releases need and it does not have; empty if it is."""

    options: Sequence[str] = ()
    """Further options of the bisection of one recording."""

    @property
    def program(self) -> str:
        """The name of the program that shows it, in `programs/`."""
        return f"{self.package.replace('-', '_')}_bug.py"


_PACKAGING = (
    "16.8 17.0 17.1 18.0 19.0 19.1 19.2 20.0 20.1 20.3 20.4 20.7 20.8 20.9 21.0 21.2 21.3 22.0 23.0 23.1 23.2 24.0 "
    "24.1 24.2 25.0"
)

CASES = (
    Case(
        package="packaging",
        releases=_PACKAGING.split(),
        culprit="22.0",
        bug="a version that follows no standard cannot be parsed",
        source="https://github.com/pypa/packaging/blob/25.0/CHANGELOG.rst",
    ),
    Case(
        package="tomlkit",
        releases=_TOMLKIT.split(),
        culprit="0.13.1",
        bug="the header of a table that holds only tables is left out",
        source="https://github.com/remarshal-project/remarshal/issues/50",
    ),
    Case(
        package="cachetools",
        releases=_CACHETOOLS.split(),
        culprit="6.1.0",
        bug="a cache with many different use counts cannot be copied",
        source="https://github.com/tkem/cachetools/blob/v7.3.1/CHANGELOG.rst",
    ),
    Case(
        package="more-itertools",
        releases=_MORE_ITERTOOLS.split(),
        culprit="11.0.0",
        bug="`pairwise` is gone",
        source="https://github.com/more-itertools/more-itertools/issues/1141",
    ),
    Case(
        package="click",
        releases=_CLICK.split(),
        culprit="8.0.0",
        bug="the `flag_value` of an option becomes a text if it is a member of an enumeration",
        source="https://github.com/pallets/click/issues/1960",
        unanswered="8.0 and 8.1 load translations, which the recording of 8.2 does not have",
    ),
    Case(
        package="pyparsing",
        releases=_PYPARSING.split(),
        culprit="3.1.0",
        bug="a copy of a `Word` raises exceptions with the name of the original",
        source="https://github.com/pyparsing/pyparsing/issues/612",
        # Before 3.0 it looks for its own source file.
        options=("--data-from-commit",),
    ),
)
