"""Programs with several threads, and with event loops, replay equal: the order, the values, the end.

The fixtures print their interleaving as a log of (lane, step). The races have either result; a replay has the recorded
one.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES, Case, cases, cases_of
from tests.harness.replays import passed_on

# An interleaving that repeats by chance does so once, not three times.
REPLAYS = 3
# A lane that waits for ever fails its own test soon. The slowest needs a tenth of it on an idle machine.
LONGEST = 20.0
# Ticks. A few lines of Python: lanes switch in the middle of everything.
SHORT = 25

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("lanes"))
def test_lanes_replay(case: Case) -> None:
    case.check(replays=REPLAYS, timeout=LONGEST)


@pytest.mark.parametrize("case", cases("lanes"))
def test_lanes_replay_in_short_slices(case: Case) -> None:
    sliced = replace(case, how=replace(case.how, slice=SHORT))

    sliced.check(timeout=LONGEST)


# A lane is preempted wherever it can be: after each call, before the program has seen what came of it.
@pytest.mark.long
@pytest.mark.parametrize("case", cases("lanes"))
def test_lanes_replay_in_slices_of_one_tick(case: Case) -> None:
    sliced = replace(case, how=replace(case.how, slice=1))

    sliced.check(timeout=2 * LONGEST)


# The interpreter runs other forms of the same instructions then, and 3.11 checks twice where a function begins.
@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in cases("lanes") if case.values[0].stdin is None])
def test_lanes_replay_while_lines_are_counted(case: Case, tmp_path: Path) -> None:
    if case.program.stem == "finalizers_under_allocation" and sys.version_info < (3, 12):
        pytest.skip("a collection may begin where tracing makes a frame object, as listen.c says")
    path = tmp_path / "a.rdbg"
    env = passed_on() | {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"} | dict(case.env)
    recording = tool.record(sys.executable, path, [str(case.program), *case.args])
    subprocess.run(
        recording, env=env | {"REPLAYDBG_TEST_SLICE": str(SHORT)}, cwd=tmp_path, stdin=subprocess.DEVNULL, check=False
    )
    with open_recording(path) as recorded:
        assert recorded.log_header is not None
        last = recorded.log_header.crossings - 1

    replay = [*tool.replay(sys.executable, path), "--to", f"{last}:1"]
    replayed = subprocess.run(
        replay, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=4 * LONGEST
    )

    assert replayed.returncode == 0, replayed.stderr.decode()


@pytest.mark.parametrize("length", [1, 2, 3])
def test_what_a_call_leaves_behind_is_there_for_other_threads(length: int) -> None:
    (case,) = cases_of(FIXTURES / "lanes" / "preempted_after_calls.py")

    replace(case, how=replace(case.how, slice=length)).check(timeout=LONGEST)


@pytest.mark.parametrize("case", cases("races"))
def test_races_come_out_the_same(case: Case) -> None:
    case.check(replays=REPLAYS, timeout=LONGEST)
