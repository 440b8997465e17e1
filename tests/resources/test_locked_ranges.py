"""Locks of ranges behave as a set of locked bytes for each holder (fcntl(2))."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.resources.descriptions import Description
from replaydbg.resources.file_names import FileNode
from replaydbg.resources.kinds import MakingCall
from replaydbg.resources.locked_ranges import ENDLESS, LockedRange, LockedRanges

BYTES = 12
_STEPS = st.tuples(
    st.sampled_from(["shared", "exclusive", "unlock", "close"]),
    st.integers(0, BYTES - 1),
    st.integers(1, BYTES),
    st.booleans(),
    st.integers(0, 1),
)


@given(st.lists(_STEPS, max_size=30))
def test_as_bytes(steps: list[tuple[str, int, int, bool, int]]) -> None:
    origin = MakingCall(1, 0, None)
    nodes = [FileNode("a"), FileNode("b")]
    through = Description("file", origin, 0)
    ranges = LockedRanges()
    model: dict[tuple[int, bool, int], bool] = {}

    for action, first, length, is_of_description, at in steps:
        holder = through if is_of_description else None
        end = first + length if length < BYTES else ENDLESS
        covered = [(at, is_of_description, each) for each in range(first, min(end, 2 * BYTES))]
        if action == "close":
            ranges.closed(nodes[at])
            model = {key: value for key, value in model.items() if key[0] != at or key[1]}
        elif action == "unlock":
            ranges.unlock(nodes[at], first, end, holder)
            for each in covered:
                model.pop(each, None)
        else:
            is_exclusive = action == "exclusive"
            ranges.lock(LockedRange(first, end, is_exclusive, nodes[at], holder, through, origin))
            model.update(dict.fromkeys(covered, is_exclusive))

    found = {
        (nodes.index(each.node), each.holder is not None, byte): each.is_exclusive
        for each in ranges.all
        for byte in range(each.first, min(each.end, 2 * BYTES))
    }
    assert found == model
