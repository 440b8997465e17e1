"""Digests of the whole heap at several moments of a recording: equal replays have equal digests.

Equal output hides a value that differs and is never printed. So the heap is walked from its roots in the order of
references, each object gets a number when the walk first reaches it, and the digest contains what does not depend on
addresses: types, sizes, values, names of references and the numbers of their targets.
"""

import hashlib
import os
import subprocess
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Moment
from replaydbg.errors import EngineLost, NoSuchMoment
from replaydbg.heap.snapshot import Snapshot

MOMENTS = 3
"""Spread over the events of a run; the last line of the run is added."""


@dataclass(frozen=True, slots=True)
class Heap:
    """The heap of one replay at one moment."""

    # Number of lines begun.
    count: int
    digest: str


def heaps_of(recording: Path) -> list[Heap]:
    """Replay the recording and return its heaps; none if it has no moment at which the program can be inspected."""
    with Session(recording) as session:
        events, total = session.index.events, session.index.total
        wanted = {session.index.count(Moment(events * part // (MOMENTS + 1) + 1, 1)) for part in range(1, MOMENTS + 1)}
        counts = sorted(count for count in wanted | {total} if 1 <= count <= total)
        return [
            Heap(count, digest(snapshot))
            for count, snapshot in zip(counts, session.heap.at_each(counts, which="all"), strict=True)
        ]


def assert_equal_heaps(recording: Path) -> None:
    """Assert that two replays, each in processes of its own, have the same objects at the same moments."""
    first, second = (_asked(recording) for _ in range(2))

    assert first == second, f"the heaps of two replays differ: {first} and {second}\nkept: {recording}"


def _asked(recording: Path) -> str:
    """The heaps as lines of text, from a process of its own: nothing that the first replay left behind is used."""
    command = [sys.executable, "-m", "tests.harness.heap_digests", str(recording)]
    env = {**os.environ, "PYTHONHASHSEED": "random", "XDG_DATA_HOME": str(recording.parent / "data")}
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def digest(snapshot: Snapshot) -> str:
    """Return a digest of everything reachable in a snapshot."""
    found = hashlib.blake2b(digest_size=16)
    for part in walk(snapshot):
        found.update(part)
    return f"{len(snapshot)} objects, {found.hexdigest()}"


def walk(snapshot: Snapshot) -> list[bytes]:
    """Yield the content of the digest, in the order of the walk: the roots, then each object's facts and references."""
    numbers = array("l", [-1]) * len(snapshot)
    order: list[int] = []
    for root in snapshot.roots:
        if numbers[root.node] < 0:
            numbers[root.node] = len(order)
            order.append(root.node)
    first, target, label = snapshot.first_edge, snapshot.target, snapshot.label
    edges = array("l")
    for node in order:  # it grows meanwhile
        for place in range(first[node], first[node + 1]):
            to = target[place]
            if numbers[to] < 0:
                numbers[to] = len(order)
                order.append(to)
            edges.append(numbers[to])
    types = [each.encode("utf-8", "surrogatepass") for each in snapshot.types]
    labels: dict[int, bytes] = {}
    parts = ["".join(f"{root.label}\n" for root in snapshot.roots).encode("utf-8", "surrogatepass"), edges.tobytes()]
    for node in order:
        value = snapshot.value_key(node).encode("utf-8", "surrogatepass")
        parts.append(b"%s %d %s" % (types[snapshot.type[node]], snapshot.size[node], value))
        for place in range(first[node], first[node + 1]):
            if (step := labels.get(label[place])) is None:
                step = labels[label[place]] = snapshot.step_text(label[place]).encode("utf-8", "surrogatepass")
            parts.append(step)
    return parts


if __name__ == "__main__":
    try:
        for each in heaps_of(Path(sys.argv[1])):
            print(each.count, each.digest)
    except (NoSuchMoment, EngineLost) as error:
        print("no moment:", type(error).__name__)
