"""Processes of a group are killed at random times: what is left opens, and replays up to its last event."""

from pathlib import Path

import pytest

from tests.kills.rounds import VICTIMS, one_round

pytestmark = [pytest.mark.slow, pytest.mark.long]

_ROUNDS = 4


@pytest.mark.parametrize("number", range(_ROUNDS))
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_group_whose_processes_were_killed_replays_up_to_its_last_events(
    victim: str, number: int, tmp_path: Path
) -> None:
    played = one_round(number, victim, tmp_path)

    assert played.replayed == played.recorded
