"""Programs with several threads, and with event loops, replay equal: the order, the values, the end.

The fixtures print their interleaving as a log of (lane, step). The races have either result; a replay has the recorded
one.
"""

from dataclasses import replace

import pytest

from tests.harness.replay_cases import Case, cases

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


@pytest.mark.parametrize("case", cases("races"))
def test_races_come_out_the_same(case: Case) -> None:
    case.check(replays=REPLAYS, timeout=LONGEST)
