"""Programs with several threads, and with event loops, replay equal: the order, the values, the end.

The fixtures print their interleaving as a log of (lane, step). The races have either result; a replay has the recorded
one.
"""

from dataclasses import replace

import pytest

from tests.harness.replay_cases import FIXTURES, Case, cases, cases_of

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


@pytest.mark.parametrize("length", [1, 2, 3])
def test_what_a_call_leaves_behind_is_there_for_other_threads(length: int) -> None:
    (case,) = cases_of(FIXTURES / "lanes" / "preempted_after_calls.py")

    replace(case, how=replace(case.how, slice=length)).check(timeout=LONGEST)


@pytest.mark.parametrize("case", cases("races"))
def test_races_come_out_the_same(case: Case) -> None:
    case.check(replays=REPLAYS, timeout=LONGEST)
