"""Checkpoints under policies, and the recovery line after a failure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.distributed.checkpoint_policies import (
    COORDINATED,
    EVENTS,
    INDUCED,
    POLICIES,
    TRANSFERS,
    UNCOORDINATED,
    Policy,
    checkpoints_of,
    present_at,
    recovery,
)
from replaydbg.distributed.cuts import CutFinder, finder_of
from replaydbg.distributed.matching import GroupMatching
from tests.distributed.model import Wire, World
from tests.distributed.test_cuts import worlds


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
    group, finder = ping_pong(10)
    checkpoints = checkpoints_of(group, finder, Policy(UNCOORDINATED, 2))
    shifted = checkpoints._replace(positions={1: [1, 3, 5, 7, 9, 11], 2: [2, 4, 6, 8, 10]})

    found = recovery(group, finder, shifted, [1, 2])

    assert found.line == {1: 11, 2: 10}
    alone = recovery(group, finder, shifted._replace(positions={1: [2, 4, 6], 2: [1, 3, 5]}), [1, 2])
    assert alone.line == {1: 0, 2: 0}
    assert alone.to_the_start == [1, 2]
    # At the time of the failure the last answer was on its way.
    assert alone.lost == {1: 18, 2: 18}


def test_coordinated_checkpoints_lose_the_least() -> None:
    group, finder = ping_pong(10)

    checkpoints = checkpoints_of(group, finder, Policy(COORDINATED, 5))
    found = recovery(group, finder, checkpoints, [1])

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

    checkpoints = checkpoints_of(group, finder_of(group), Policy(INDUCED, 4))

    assert checkpoints.positions[1] == [4, 8, 12, 16]
    # Before each first receive of something that was sent after another checkpoint; the fourth is its own.
    assert checkpoints.positions[2] == [1, 2, 4, 5]
    assert checkpoints.forced == 3


def test_checkpoints_by_transfers() -> None:
    group, finder = ping_pong(4)

    assert checkpoints_of(group, finder, Policy(UNCOORDINATED, 3, TRANSFERS)).positions == {1: [3, 6], 2: [3, 6]}
    assert checkpoints_of(group, finder, Policy(UNCOORDINATED, 3, EVENTS)).positions == {1: [3, 6], 2: [3, 6]}


@settings(max_examples=50)
@given(worlds(), st.sampled_from(POLICIES), st.integers(1, 6), st.data())
def test_the_line_is_consistent_and_made_of_checkpoints(
    world: World, kind: str, every: int, data: st.DataObject
) -> None:
    group = GroupMatching(world.members(), world.contents)
    finder = finder_of(group)
    failed = data.draw(st.sets(st.sampled_from(sorted(finder.last)), min_size=1))

    checkpoints = checkpoints_of(group, finder, Policy(kind, every))
    found = recovery(group, finder, checkpoints, sorted(failed))

    present = present_at(group, finder, sorted(failed))
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
    checkpoints = checkpoints_of(group, finder, Policy(INDUCED, every))

    for process, positions in checkpoints.positions.items():
        for position in positions:
            allowed = {
                other: [position] if other == process else [*each, finder.last[other]]
                for other, each in checkpoints.positions.items()
            }
            assert finder.latest(finder.last, allowed)[process] == position


@pytest.mark.parametrize("kind", POLICIES)
def test_without_processes_there_is_nothing(kind: str) -> None:
    group = GroupMatching([])
    if kind != COORDINATED:
        assert checkpoints_of(group, finder_of(group), Policy(kind, 5)).total == 0
