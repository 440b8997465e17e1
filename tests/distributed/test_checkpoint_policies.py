"""Checkpoints under policies, and the recovery line after a failure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.distributed import checkpoint_policies
from replaydbg.distributed.checkpoint_policies import (
    COORDINATED,
    EVENTS,
    INDUCED,
    POLICIES,
    TRANSFERS,
    UNCOORDINATED,
    CheckpointedRun,
    Policy,
)
from replaydbg.distributed.cuts import CutFinder, finder_of
from replaydbg.distributed.matching.matching import GroupMatching
from tests.distributed.model import Wire, World
from tests.distributed.test_cuts import worlds


def run_of(group: GroupMatching) -> CheckpointedRun:
    return CheckpointedRun(group, finder_of(group))


def ping_pong(rounds: int) -> tuple[GroupMatching, CutFinder]:
    """Two processes that answer each other: each event but the first needs one of the other process."""
    world = World(2)
    one, other = world.processes
    there, back = Wire(), Wire()
    ends = [(each.open("pipe", "1:1", "1:1"), each.open("pipe", "1:2", "1:2")) for each in (one, other)]
    for _ in range(rounds):
        one.send(there, ends[0][0], b"question")
        other.receive(there, ends[1][0])
        other.send(back, ends[1][1], b"answer")
        one.receive(back, ends[0][1])
    group = GroupMatching(world.members(), world.contents)
    return group, finder_of(group)


def test_checkpoints_that_never_fit_together_lead_to_the_start() -> None:
    """The domino effect: each checkpoint of one is between a send and its answer, as seen from the other."""
    group, _finder = ping_pong(10)
    checkpoints = run_of(group).checkpoints(Policy(UNCOORDINATED, 2))
    shifted = checkpoints._replace(positions={1: [1, 3, 5, 7, 9, 11], 2: [2, 4, 6, 8, 10]})

    found = run_of(group).recovery(shifted, [1, 2])

    assert found.line == {1: 11, 2: 10}
    alone = run_of(group).recovery(shifted._replace(positions={1: [2, 4, 6], 2: [1, 3, 5]}), [1, 2])
    assert alone.line == {1: 0, 2: 0}
    assert alone.to_the_start == [1, 2]
    # At the time of the failure the last answer was on its way.
    assert alone.lost == {1: 18, 2: 18}


def test_coordinated_checkpoints_lose_the_least() -> None:
    group, finder = ping_pong(10)

    checkpoints = run_of(group).checkpoints(Policy(COORDINATED, 5))
    found = run_of(group).recovery(checkpoints, [1])

    assert [
        finder.is_consistent(dict(zip((1, 2), each, strict=True)))
        for each in zip(*checkpoints.positions.values(), strict=True)
    ] == [True] * 4
    assert found.line == {1: 15, 2: 14}
    assert checkpoints.forced == 0


def test_messages_force_checkpoints() -> None:
    """One process has three events for each of the other's, and so takes its checkpoints earlier."""
    world = World(2)
    one, other = world.processes
    wire = Wire()
    end, far = one.open("pipe", "1:1", "1:1"), other.open("pipe", "1:1", "1:1")
    for _ in range(6):
        for _ in range(3):
            one.send(wire, end, b"x")
        other.receive(wire, far, 3)
    group = GroupMatching(world.members(), world.contents)

    checkpoints = run_of(group).checkpoints(Policy(INDUCED, 4))

    assert checkpoints.positions[1] == [4, 8, 12, 16]
    # Before each first receive of something that was sent after another checkpoint; the fourth is its own.
    assert checkpoints.positions[2] == [1, 2, 4, 5]
    assert checkpoints.forced == 3


def test_checkpoints_by_transfers() -> None:
    group, _finder = ping_pong(4)

    assert run_of(group).checkpoints(Policy(UNCOORDINATED, 3, TRANSFERS)).positions == {1: [3, 6], 2: [3, 6]}
    assert run_of(group).checkpoints(Policy(UNCOORDINATED, 3, EVENTS)).positions == {1: [3, 6], 2: [3, 6]}


def one_by_one(first: int, last: int, ended: list[int], every: int) -> list[int]:
    """The definition of adaptive checkpoints: each position collects, and one is taken when there is enough."""
    found, collected = [], 0
    for position in range(first, last + 1):
        collected += len(ended) + ended.count(position) * (last - first + 1)
        if collected >= 2 * every * len(ended):
            collected -= 2 * every * len(ended)
            found.append(position)
    return found


@given(
    st.integers(1, 5),
    st.integers(0, 60),
    st.lists(st.integers(1, 64), min_size=1, max_size=20).map(sorted),
    st.integers(1, 9),
)
def test_adaptive_checkpoints_are_nearer_where_more_is_sent(
    first: int, length: int, ended: list[int], every: int
) -> None:
    last = first + length

    assert list(checkpoint_policies._adaptive(first, last, ended, every)) == one_by_one(first, last, ended, every)


def test_a_process_that_claims_any_number_of_events_has_so_many_adaptive_checkpoints_at_once() -> None:
    found = checkpoint_policies._adaptive(1, 1 << 60, [3, 1 << 59], 10)

    assert len([position for position, _ in zip(found, range(1000), strict=False)]) == 1000


def test_periodic_checkpoints_are_where_a_period_has_passed() -> None:
    marks = [(0, 5), (3, 14), (4, 16), (9, 26), (12, 70), (13, 71), (20, 76)]

    assert list(checkpoint_policies._periodic(marks, 10)) == [4, 9, 12, 20]
    assert list(checkpoint_policies._periodic([], 10)) == []


@settings(max_examples=50)
@given(worlds(), st.sampled_from(POLICIES), st.integers(1, 6), st.data())
def test_the_line_is_consistent_and_made_of_checkpoints(
    world: World, kind: str, every: int, data: st.DataObject
) -> None:
    group = GroupMatching(world.members(), world.contents)
    finder = finder_of(group)
    failed = data.draw(st.sets(st.sampled_from(sorted(finder.last)), min_size=1))

    checkpoints = run_of(group).checkpoints(Policy(kind, every))
    found = run_of(group).recovery(checkpoints, sorted(failed))

    present = run_of(group).present_at(sorted(failed))
    assert finder.is_consistent(found.line)
    for process, position in found.line.items():
        is_present = process not in failed and position == present[process]
        assert is_present or position == 0 or position in checkpoints.positions[process]
        assert checkpoints.positions[process] == sorted(set(checkpoints.positions[process]))


@settings(max_examples=50)
@given(worlds(), st.integers(1, 6))
def test_induced_checkpoints_have_no_useless_one(world: World, every: int) -> None:
    """Checkpoints with equal indexes fit together, so that each belongs to a consistent cut of checkpoints."""
    group = GroupMatching(world.members(), world.contents)
    finder = finder_of(group)
    checkpoints = run_of(group).checkpoints(Policy(INDUCED, every))

    for process, positions in checkpoints.positions.items():
        for position in positions:
            allowed = {
                other: [position] if other == process else [*each, finder.last[other]]
                for other, each in checkpoints.positions.items()
            }
            assert finder.latest(finder.last, allowed)[process] == position


@pytest.mark.parametrize("kind", POLICIES)
def test_without_processes_there_is_nothing(kind: str) -> None:
    assert run_of(GroupMatching([])).checkpoints(Policy(kind, 5)).total == 0


def test_a_forged_number_of_events_makes_no_endless_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_policies, "MOST_CHECKPOINTS", 100)
    group, _ = ping_pong(1)
    group = GroupMatching([member._replace(events=1 << 62) for member in group.members])

    assert run_of(group).checkpoints(Policy(UNCOORDINATED, 1)).total == 200
