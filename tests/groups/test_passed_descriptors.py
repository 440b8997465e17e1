"""A connection, or a pipe, whose descriptor was passed to another process is the same channel there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from replaydbg.distributed.matching.matching import Matched
from replaydbg.groups.messages import messages_of
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.transfers import PASSES, RECEIVES
from replaydbg.render.channels_text import message_remarks
from replaydbg.render.json_data.channels_json import message_facts
from tests.harness import tool
from tests.harness.children import PROGRAMS, RecordedGroup, completed, record_group
from tests.harness.process import run
from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


def _recorded(name: str) -> tuple[RecordedGroup, OpenedGroup]:
    found = cases("children", "passed_descriptors")
    case: Case = next(each.values[0] for each in found if each.values[0].args == (name,))
    made = record_group(case)
    opened = OpenedGroup(made.directory)
    assert opened.problems == {}
    return made, opened


def _matched(opened: OpenedGroup, kind: str) -> list[Matched]:
    return [opened.matching.match(each) for each in opened.matching.channels if each.kind == kind]


def _assert_whole(found: Matched) -> None:
    assert found.contradiction is None
    assert found.early is None
    assert not found.channel.doubt
    assert (found.lost, found.from_nowhere) == (0, 0)


def _passed(opened: OpenedGroup, process: int, *, is_receive: bool) -> list[str]:
    """Return the kinds and identities of the ends whose descriptors a process has passed, or received."""
    index = opened.index_of(process)
    assert index is not None
    columns = opened.matching.members[index].transfers
    shown = []
    for row in range(columns.count):
        if columns.flags[row] & PASSES and bool(columns.flags[row] & RECEIVES) == is_receive:
            (message,) = messages_of(opened, process, columns.event[row], is_receive=is_receive)
            shown += [f"{end.kind} {end.own}" for end in message.passed]
            facts = [{"kind": end.kind, "own": end.own, "path": end.path} for end in message.passed]
            assert message_facts([message])[0]["passed"] == facts
            assert any("descriptors of" in each for each in message_remarks([message])) == bool(facts)
    return shown


def test_a_connection_is_accepted_by_one_process_and_answered_by_another() -> None:
    made, opened = _recorded("connection")

    there, back = _matched(opened, "tcp")
    assert (there.channel.senders, there.channel.receivers) == ((3,), (1, 2))
    assert (back.channel.senders, back.channel.receivers) == ((1, 2), (3,))
    for each in (there, back):
        _assert_whole(each)
    receives = [there.receives.members[there.receives.place(at)[0]].process for at in there.segments.receive]
    assert receives == [1, 2]
    assert _passed(opened, 1, is_receive=False) == [f"tcp {there.channel.peer}"]
    assert _passed(opened, 2, is_receive=True) == [f"tcp {there.channel.peer}"]
    made.scene.remove()


def test_the_end_of_a_pipe_goes_from_process_to_process() -> None:
    made, opened = _recorded("pipe_end")

    (found,) = [each for each in _matched(opened, "pipe") if len(each.channel.senders) > 1]
    assert (found.channel.senders, found.channel.receivers) == ((1, 2, 3), (1,))
    _assert_whole(found)
    assert _passed(opened, 1, is_receive=False) == _passed(opened, 2, is_receive=True) == [f"pipe {found.channel.own}"]
    assert _passed(opened, 2, is_receive=False) == _passed(opened, 3, is_receive=True) == [f"pipe {found.channel.own}"]
    made.scene.remove()


def test_a_socket_whose_peer_was_gone_when_it_was_passed_is_the_same_channel() -> None:
    made, opened = _recorded("peer_is_gone")

    inode = _passed(opened, 1, is_receive=False)[0].split()[1]
    (found,) = [each for each in _matched(opened, "unix") if each.channel.peer == inode]
    assert (found.channel.senders, found.channel.receivers) == ((1,), (1, 2))
    _assert_whole(found)
    made.scene.remove()


def test_a_socket_for_datagrams_is_passed_beside_a_file() -> None:
    made, opened = _recorded("datagrams")

    (found,) = _matched(opened, "udp")
    assert (found.channel.senders, found.channel.receivers) == ((1,), (1, 2))
    assert len(found.segments) == 1
    assert _passed(opened, 1, is_receive=False) == _passed(opened, 2, is_receive=True) == [f"udp {found.channel.peer}"]
    made.scene.remove()


def test_multiprocessing_sends_a_handle() -> None:
    made, opened = _recorded("of_multiprocessing")

    _assert_all_arrived(opened)
    made.scene.remove()


FORKSERVER = """
import multiprocessing


def work(end):
    end.send("from the child of a server")


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    ours, its = context.Pipe()
    process = context.Process(target=work, args=(its,))
    process.start()
    print(ours.recv())
    process.join()
"""


def test_the_pipes_of_a_forkserver(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(FORKSERVER)
    command = tool.record(sys.executable, tmp_path / "made", ["prog.py"], options=PROGRAMS)
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    completed(tmp_path / "made.rdbgs")

    assert done.stdout == b"from the child of a server\n", done.stderr
    opened = OpenedGroup(tmp_path / "made.rdbgs")
    assert opened.problems == {}
    _assert_all_arrived(opened)


def _assert_all_arrived(opened: OpenedGroup) -> None:
    passed, received = (
        sorted(name for each in opened.matching.members for name in _passed(opened, each.process, is_receive=way))
        for way in (False, True)
    )
    assert passed == received != []
    for each in opened.matching.channels:
        found = opened.matching.match(each)
        assert found.contradiction is None
        assert found.early is None
        if each.senders and each.receivers:
            assert found.from_nowhere == 0, each
