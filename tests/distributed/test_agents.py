"""Agents of one process: what a snapshot holds, and what it reports if it is not complete."""

from __future__ import annotations

import json
import queue
import sys
import threading

import pytest

from replaydbg import distributed
from replaydbg.distributed import AgentSystem, Uncopied
from replaydbg.errors import SnapshotIncomplete, UsageError
from tests.distributed.agent_pair import Pair
from tests.harness.replay_cases import Case, cases


@pytest.mark.parametrize("case", cases("agents"))
def test_a_program_with_agents_replays(case: Case) -> None:
    case.check()


def test_an_error_names_what_is_missing() -> None:
    pair = Pair()
    snapshot = pair.x.begin()

    with pytest.raises(SnapshotIncomplete) as raised:
        snapshot.wait(0.001)

    assert str(raised.value) == (
        "Snapshot X#1 is not complete: the state of Y is not recorded; no marker has arrived on X->Y, Y->X."
    )
    assert raised.value.state == snapshot.state()
    assert raised.value.as_dict()["waiting"] == {"X->Y": "", "Y->X": ""}
    assert str(snapshot.state()).splitlines()[0] == "snapshot X#1: incomplete"


def test_two_snapshots_at_once_and_one_later() -> None:
    pair = Pair()
    pair.x.send(pair.to_y, 1)
    first, second = pair.x.begin(), pair.y.begin()
    pair.y.send(pair.to_x, 2)
    for agent in (pair.x, pair.y, pair.x, pair.y):
        agent.take_markers()
    assert (pair.y.receive(pair.to_y), pair.x.receive(pair.to_x)) == (1, 2)
    third = pair.x.begin()
    pair.y.take_markers()
    pair.x.take_markers()

    assert [each.name for each in (first, second, third)] == ["X#1", "Y#1", "X#2"]
    assert first.wait(0).in_flight == {"X->Y": (1,), "Y->X": (2,)}
    assert second.wait(0).in_flight == {"X->Y": (1,), "Y->X": ()}
    assert third.wait(0).in_flight == {"X->Y": (), "Y->X": ()}


def test_threads_of_one_agent_receive_from_one_channel_in_order() -> None:
    """A marker is never handled before a message in front of it, whichever thread reads them."""
    pair = Pair()
    pair.states.update(X=0, Y=0)
    snapshots = []

    def send() -> None:
        for number in range(300):
            with pair.x.atomic():
                pair.states["X"] -= 1
                pair.x.send(pair.to_y, 1)
            if number % 2:
                snapshots.append(pair.x.begin())

    def receive() -> None:
        def deposit(number: int) -> None:
            pair.states["Y"] += number

        for _ in range(100):
            pair.y.receive(pair.to_y, apply=deposit)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=act) for act in (send, receive, receive, receive)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    sys.setswitchinterval(interval)

    assert pair.y.take_markers()
    assert pair.x.take_markers()
    assert [each.wait(0).states for each in snapshots] == [{"X": -count, "Y": count} for count in range(2, 301, 2)]


def test_the_recording_of_a_channel_ends_with_its_marker() -> None:
    """Another channel still waits: what follows the marker belongs to no state."""
    system = AgentSystem()
    x, y, z = (system.agent(name, int) for name in "XYZ")
    to_y, to_z = system.channel(x, y, queue.Queue()), system.channel(x, z, queue.Queue())
    from_y, from_z = system.channel(y, x, queue.Queue()), system.channel(z, x, queue.Queue())
    z.send(from_z, "z early")
    y.send(from_y, "y early")
    snapshot = x.begin()
    y.take_markers()
    y.send(from_y, "y late")
    received = [x.receive(from_y), x.receive(from_y), x.receive(from_z)]
    z.take_markers()
    x.take_markers()

    assert received == ["y early", "y late", "z early"]
    expected: dict[str, tuple[str, ...]] = {to_y.name: (), to_z.name: ()}
    assert snapshot.wait(0).in_flight == {**expected, "Y->X": ("y early",), "Z->X": ("z early",)}


def test_an_agent_that_is_not_reached_can_join() -> None:
    system = AgentSystem()
    x, y = system.agent("X", lambda: 1), system.agent("Y", lambda: 2)
    channel = system.channel(y, x, queue.Queue())
    snapshot = x.begin()
    assert snapshot.state().missing == ("Y",)

    y.join(snapshot)
    y.join(snapshot)

    assert x.take_markers()
    assert snapshot.wait(0).states == {"X": 1, "Y": 2}
    assert channel.name == "Y->X"


def test_a_snapshot_of_another_system_cannot_be_joined() -> None:
    snapshot = Pair().x.begin()

    with pytest.raises(UsageError, match="Snapshot X#1 is of another AgentSystem than agent 'Y'"):
        Pair().y.join(snapshot)


def test_states_and_messages_are_copies() -> None:
    pair = Pair()
    message = [1]
    pair.states["X"].append("before")
    pair.y.send(pair.to_x, message)
    snapshot = pair.x.begin()
    pair.states["X"].append("after")
    pair.x.receive(pair.to_x).append(2)
    pair.y.take_markers()
    pair.x.take_markers()

    state = snapshot.wait(0)

    assert state.states["X"] == ["before"]
    assert state.in_flight["Y->X"] == ([1],)


class Holder:
    """An object with a part that cannot be copied."""

    def __init__(self) -> None:
        self.items = [1, {"lock": threading.Lock()}]


def test_what_cannot_be_copied_is_named() -> None:
    pair = Pair()
    pair.states["X"] = {"held": Holder()}
    pair.y.send(pair.to_x, (threading.Lock(), 1))
    snapshot = pair.x.begin()
    del pair.states["Y"]
    pair.y.take_markers()
    pair.x.take_markers()

    state = snapshot.wait(0)

    no_lock = "cannot be copied: TypeError: cannot pickle '_thread.lock' object"
    assert state.states["X"] == Uncopied(f"state['held'].items[1]['lock'] {no_lock}")
    assert state.states["Y"] == Uncopied("the state function raised KeyError: 'Y'")
    assert state.in_flight["Y->X"] == (Uncopied(f"message[0] {no_lock}"),)
    assert json.loads(json.dumps(state.as_dict()))["agents"][1]["state"] == {"uncopied": state.states["Y"].reason}
    assert f"X: state['held'].items[1]['lock'] {no_lock}" in str(state)


def test_json_has_only_what_json_has() -> None:
    pair = Pair()
    pair.states["X"] = {"n": 1, "f": 0.5, "inf": float("inf"), "t": (None, True), "b": b"x", "d": {1: 2}, "s": {3}}
    data = json.loads(json.dumps(pair.x.begin().state().as_dict(), allow_nan=False))

    assert data["agents"] == [
        {
            "agent": "X",
            "state": {"n": 1, "f": 0.5, "inf": "inf", "t": [None, True], "b": "b'x'", "d": "{1: 2}", "s": "{3}"},
        }
    ]
    assert (data["schema_version"], data["snapshot"], data["is_complete"]) == (1, "X#1", False)
    assert data["channels"][0]["waits"] == "waits for its marker"


def test_every_public_name_is_documented() -> None:
    from tests.project.test_docs import ROOT

    text = (ROOT / "docs" / "reference" / "distributed.md").read_text(encoding="utf-8")
    for name in distributed.__all__:
        assert f"{name}" in text
        for member in vars(getattr(distributed, name)):
            if not member.startswith("_") and not issubclass(getattr(distributed, name), Exception):
                assert f"`{member}" in text or member in _INTERNAL, f"{name}.{member}"


_INTERNAL = {"route", "read", "read_async", "reading", "turns", "pass_on_async", "async_transport"}
"""Of `Channel`: for the other modules only."""
