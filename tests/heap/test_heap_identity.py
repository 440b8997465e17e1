"""The same object has the same name at two moments, even where memory was reused many times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.recorded_snapshots import load_stored
from replaydbg.log.reader import open_recording
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "heap" / "replaces_a_third.py"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("identity"))


def serials(snapshot: Snapshot) -> dict[int, tuple[str, int]]:
    """Return, by address, the number with which each object was made, and since when it exists."""
    texts = {
        node: snapshot.value_text(node)
        for node in range(len(snapshot))
        if snapshot.value_text(node).startswith("'serial ")
    }
    found = {}
    for node in range(len(snapshot)):
        for edge in snapshot.edges(node):
            if edge.target in texts:
                found[snapshot.address[node]] = texts[edge.target], snapshot.since[node]
    return found


def check(snapshots: Sequence[Snapshot]) -> None:
    assert len({each.taken.run for each in snapshots}) == 1
    for earlier, later in combinations(snapshots, 2):
        before, after = serials(earlier), serials(later)
        assert len(before) > 5000
        number = earlier.taken.number
        same = {address: text for address, (text, since) in after.items() if since <= number and address in before}
        assert {address: before[address][0] for address in same} == same
        at = {text: address for address, (text, _) in after.items()}
        survivors = {text for text, _ in before.values()} & at.keys()
        assert {text for text in survivors if after[at[text]][1] > number} == set(), "known again"
        assert len(survivors) < len(before), "some were replaced"
        # Other allocators, such as a sanitizer's, reuse it late.
        is_reused = any(address in before and address not in same for address in after)
        assert is_reused or "PYTHONMALLOC" in os.environ, "memory was used again"


def test_identity_holds_in_snapshots_of_the_recording(recording: Path) -> None:
    with open_recording(recording) as opened:
        check([load_stored(opened, number) for number in (1, 2, 3, 4)])


def test_identity_holds_between_moments(recording: Path) -> None:
    with Session(recording) as session:
        check(session.heap.at_each(["@#1", "@#2", "@#3", "@#4"]))
