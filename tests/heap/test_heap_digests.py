"""Two replays of a recording have the same heap, object by object, at several moments: not only the same output.

By default a sample of the fixtures is checked, a part of it in each area; `tox -e heaps` (TEST_HEAPS=all) checks all.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness.heap_digests import assert_equal_heaps, heaps_of
from tests.harness.replay_cases import FIXTURES, Case, cases
from tests.harness.replays import Scene

pytestmark = pytest.mark.slow

_AREAS = [
    *("agents", "asyncio", "cinputs", "clocks", "entropy", "environment", "errors", "exit", "files", "foreign"),
    *("garbage", "identity", "imports", "lanes", "network", "processes", "signals", "sqlite", "standins"),
    *("startup", "streams", "tls", "waiting", "warnings"),
]
# One in so many of an area's cases; which one does not change from run to run.
_SAMPLE = 1 if os.environ.get("TEST_HEAPS") == "all" else 60
# Why the heaps of two replays of these may differ.
_HANDLES = "ctypes keeps the handles of libraries, which are addresses that belong to no object"
_MAY_DIFFER = dict.fromkeys(("ctypes_calls", "data_on_code_objects", "values_and_arrays"), _HANDLES)


def _sampled() -> list[Any]:
    found = []
    for area in _AREAS:
        for number, parameter in enumerate(cases(area)):
            case = parameter.values[0]
            if number % _SAMPLE == 0 and case.fails is None and case.program.stem not in _MAY_DIFFER:
                found.append(pytest.param(case, id=f"{area}-{parameter.id}"))
    return found


@pytest.mark.parametrize("case", _sampled())
def test_two_replays_have_the_same_heap(case: Case) -> None:
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=case.how)
    scene.record()

    assert_equal_heaps(scene.recording)

    scene.remove()


def test_a_digest_shows_one_value_that_differs(tmp_path: Path) -> None:
    scene = Scene.make(
        _program(tmp_path, '"""Counts."""\nimport os\nCACHE = [0]\nfor CACHE[0] in range(500):\n    os.stat("/")\n')
    )
    scene.record()

    heaps = heaps_of(scene.recording)

    assert len({heap.digest for heap in heaps}) == len(heaps)
    scene.remove()


def test_every_area_of_the_fixtures_that_replays_is_sampled() -> None:
    of_their_own = {
        "apart",
        "bisect",
        "children",
        "cuts",
        "data_frames",
        "flaky",
        "formats",
        "futures",
        "fuzz",
        "heap",
        "pages",
        "planted",
        "programs",
        "pytest",
        "races",
        "raises",
        "steps",
        "travel",
    }

    assert {path.name for path in FIXTURES.iterdir() if path.is_dir()} - of_their_own == set(_AREAS)


def _program(folder: Path, text: str) -> Path:
    program = folder / "program.py"
    program.write_text(text)
    return program
