"""The tests that are run, in parts of a few test cases.

The replay of a forked child runs what its parent did before the fork. In a run of hundreds of tests, each of which
forks, that would be most of the time; in a part it is little.
"""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.harness.surroundings import without_steering

_START_METHODS = ("fork", "forkserver", "spawn")
# What `test._test_multiprocessing` lets one choose. Installations have lacked the modules that do it.
_KINDS = {
    "processes": 'only_type="processes"',
    "manager": 'only_type="manager"',
    "threads": 'only_type="threads"',
    "misc": "exclude_types=True",
}
_MODULE = """from test._test_multiprocessing import install_tests_in_module_dict

install_tests_in_module_dict(globals(), "{method}", {kind})
"""
_PLAIN = ("test_concurrent_futures", "test_os", "test_pty", "test_subprocess", "test_asyncio.test_subprocess")

SUITES = tuple(f"test_multiprocessing_{method}" for method in _START_METHODS) + _PLAIN
_LONGEST = 8
"""Test cases of a part."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some test cases of a module."""

    suite: str
    module: str
    """As `python -m test` takes it."""
    cases: tuple[str, ...]
    """Test ids."""
    number: int

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.module.removeprefix('test.')}-{self.number}"


def lay_out(directory: Path, suite: str) -> None:
    """Write the modules of a suite that are not installed into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    method = suite.removeprefix("test_multiprocessing_")
    if method != suite:
        for name, kind in _KINDS.items():
            (directory / f"test_{method}_{name}.py").write_text(_MODULE.format(method=method, kind=kind))


def arguments(directory: Path, suite: str) -> list[str]:
    """Return the arguments of `python -m test` for modules in `directory`."""
    return ["--testdir", str(directory)] if suite.startswith("test_multiprocessing_") else []


def parts_of(suite: str, directory: Path, ignored: tuple[str, ...]) -> list[Part]:
    """Return the parts of a suite, whose own modules are in `directory`; none: it is not installed.

    `ignored` are patterns of test ids.
    """
    found = []
    for module in _modules(suite, directory):
        cases = _cases(module, suite, directory, ignored)
        number = 0
        # Those of one class together: some classes start a manager for all of their tests.
        for _, group in groupby(cases, lambda case: case.rpartition(".")[0]):
            every = list(group)
            for at in range(0, len(every), _LONGEST):
                number += 1
                found.append(Part(suite, module, tuple(every[at : at + _LONGEST]), number))
    return found


def _modules(suite: str, directory: Path) -> list[str]:
    own = sorted(path.stem for path in directory.glob("test_*.py"))
    if own:
        return own
    spec = importlib.util.find_spec(f"test.{suite}")
    if spec is None or spec.origin is None:
        return []
    origin = Path(spec.origin)
    if origin.name == "__init__.py":
        return [f"test.{suite}.{path.stem}" for path in sorted(origin.parent.glob("test_*.py"))]
    return [f"test.{suite}"]


def _cases(module: str, suite: str, directory: Path, ignored: tuple[str, ...]) -> list[str]:
    ignoring = [part for pattern in ignored for part in ("--ignore", pattern)]
    command = [sys.executable, "-m", "test", "--list-cases", *arguments(directory, suite), *ignoring, module]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=without_steering(os.environ))
    # The first line may be a note on resources.
    return [line for line in done.stdout.splitlines() if line.count(".") > 1 and " " not in line]


def read_left_out(file: Path) -> dict[str, str]:
    """Return the patterns of tests that are not run, each with the reason."""
    patterns: dict[str, str] = json.loads(file.read_text())
    return patterns
