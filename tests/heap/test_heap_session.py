"""Snapshots of moments of a recording: their content, and the identity of objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.heap.limits import Limits
from replaydbg.heap.snapshot import FRAME_TYPE, Snapshot
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "heap" / "keeps_every_order.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(PROGRAM, tmp_path_factory.mktemp("heap"))
    with Session(recording, spacing=0.005) as opened:
        yield opened


def line_number(text: str) -> int:
    (found,) = (n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.strip() == text)
    return found


def count_at(session: Session, text: str, passage: int = 1) -> int:
    session.seek("@start")
    file = session.sources.file_named(PROGRAM.name)
    from replaydbg.debugger.session_results import Breakpoint

    point = session.breakpoints.add(Breakpoint(0, file=file, line=line_number(text)))
    try:
        for _ in range(passage):
            session.go()
        assert session.here.top is not None
        assert session.here.top.line == line_number(text)
        return session.here.count
    finally:
        session.breakpoints.remove(point.number)


def follow(snapshot: Snapshot, node: int, *steps: str) -> int:
    for step in steps:
        found = [edge.target for edge in snapshot.edges(node) if snapshot.step_text(edge.label) == step]
        assert found, f"{step} is not in {[snapshot.step_text(edge.label) for edge in snapshot.edges(node)]}"
        node = found[0]
    return node


def root(snapshot: Snapshot, label: str) -> int:
    found = [each.node for each in snapshot.roots if each.label == label]
    assert len(found) == 1, [each.label for each in snapshot.roots]
    node = found[0]
    return node


def test_modules_frames_and_lanes_are_where_it_begins(session: Session) -> None:
    count = count_at(session, "end = len(CACHE)")
    snapshot = session.heap.at(count)

    assert snapshot.cut == ()
    assert [each.label for each in snapshot.roots if "thread" not in each.label] == ["__main__"]
    cache = follow(snapshot, root(snapshot, "__main__"), ".CACHE")
    price = follow(snapshot, cache, "['order 5']", ".price")
    assert snapshot.value_text(price) == "0.25"
    work = root(snapshot, f"thread 0 (MainThread): work() line {line_number('end = len(CACHE)')}")
    assert snapshot.type_name(work) == FRAME_TYPE
    total = follow(snapshot, work, ".f_locals['generator']", ".gi_frame.f_locals['total']")
    assert snapshot.value_text(total) == "5"
    waiting = root(snapshot, f"thread 1 (keeper): waits() line {line_number('go.wait()')}")
    kept = follow(snapshot, waiting, ".f_locals['inside']", "[0]")
    assert snapshot.value_text(kept) == "'only in a thread'"


def test_slots_and_classes_are_followed(session: Session) -> None:
    count = count_at(session, "return mark.y", 7)
    snapshot = session.heap.at(count)

    frame = root(snapshot, f"thread 0 (MainThread): handle() line {line_number('return mark.y')}")
    point = follow(snapshot, frame, ".f_locals['mark']")
    assert snapshot.type_name(point) == "__main__.Point"
    assert snapshot.value_text(follow(snapshot, point, ".x")) == "6"
    assert follow(snapshot, point, ".__class__") == follow(snapshot, root(snapshot, "__main__"), ".Point")


def test_a_snapshot_of_here_is_that_of_its_moment(session: Session) -> None:
    count = count_at(session, "end = len(CACHE)")
    here, there = session.heap.at(), session.heap.at_each([count])[0]

    assert list(here.address) == list(there.address)
    assert list(here.target) == list(there.target)
    assert here.taken.step == there.taken.step == count


def test_the_same_object_is_known_at_two_moments(session: Session) -> None:
    early = count_at(session, 'CACHE.pop("order 3")')
    late = count_at(session, "end = len(CACHE)")
    a, b = session.heap.at_each([early, late])

    assert (a.taken.number, b.taken.number) == (1, 2)
    assert a.taken.run == b.taken.run != ""
    orders_a = {a.address[node] for node in range(len(a)) if a.type_name(node) == "__main__.Order"}
    orders_b = {b.address[node]: b.since[node] for node in range(len(b)) if b.type_name(node) == "__main__.Order"}
    assert len(orders_a) == 20
    assert len(orders_b) == 39
    same = {address for address, since in orders_b.items() if since <= 1 and address in orders_a}
    cache_a = follow(a, root(a, "__main__"), ".CACHE")
    cache_b = follow(b, root(b, "__main__"), ".CACHE")
    kept = {a.address[follow(a, cache_a, f"['order {n}']")] for n in range(20) if n != 3}
    assert same == kept
    assert kept == {b.address[follow(b, cache_b, f"['order {n}']")] for n in range(20) if n != 3}
    new = {b.address[follow(b, cache_b, f"['order {n}']")] for n in range(20, 40)}
    assert all(orders_b[address] == 2 or address not in orders_a for address in new)


def test_moments_may_come_in_any_order_and_twice(session: Session) -> None:
    early = count_at(session, 'CACHE.pop("order 3")')
    late = count_at(session, "end = len(CACHE)")
    b, a, again = session.heap.at_each([late, early, late])

    assert (a.taken.step, b.taken.step) == (early, late)
    assert again.address == b.address


def test_all_modules_are_more_than_the_programs(session: Session) -> None:
    session.seek(count_at(session, "end = len(CACHE)"))
    mine, everything = session.heap.at(), session.heap.at(which="all")

    assert len(everything) > 10 * len(mine)
    assert {"__main__", "sys", "threading"} <= {each.label for each in everything.roots}


def test_limits_are_obeyed_and_said(session: Session) -> None:
    session.seek(count_at(session, "end = len(CACHE)"))
    snapshot = session.heap.at(limits=Limits(nodes=30))

    assert len(snapshot) == 30
    assert snapshot.cut[0].startswith("The snapshot is limited to 30 objects: ")
