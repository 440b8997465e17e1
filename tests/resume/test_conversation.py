"""The conversation with the core: its message is checked, and the answer has the form of the protocol."""

import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from replaydbg.errors import ForgedMessage
from replaydbg.log.coding.codec import decode_value, encode_value
from replaydbg.resume.conversation import MOST_DESCRIPTORS, CoreAnswer, Settled, parse_due, read_due

_CALL = {
    "thread": 1,
    "name": "worker",
    "call": "posix.write",
    "open": True,
    "fd": 3,
    "args": [3, {"type": "bytes"}],
    "data": b"abc",
    "data_length": 3,
}
_DUE = {"event": 7, "thread": -1, "calls": [_CALL], "fds": [0, 3], "real": []}


def sent(data: bytes) -> Any:
    ours, core = socket.socketpair()
    with ours, core:
        core.sendall(data)
        core.shutdown(socket.SHUT_WR)
        return read_due(ours)


def message(value: object) -> bytes:
    data = encode_value(value)
    return struct.pack("<Q", len(data)) + data


def test_the_message_of_the_core_is_read() -> None:
    due = sent(message(_DUE))

    assert (due.event, due.thread, due.fds) == (7, -1, (0, 3))
    assert (due.calls[0].call, due.calls[0].data, due.calls[0].is_open) == ("posix.write", b"abc", True)


def test_a_process_that_ended_sends_nothing() -> None:
    assert sent(b"") is None


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 1 << 40),
        message(_DUE)[:-1],
        struct.pack("<Q", 1) + b"\xff",
        message([]),
        message(_DUE | {"event": -1}),
        message(_DUE | {"fds": [-1]}),
        message(_DUE | {"calls": [_CALL | {"data": "text"}]}),
        message({name: value for name, value in _DUE.items() if name != "calls"}),
    ],
)
def test_a_message_that_no_core_sends_is_refused(data: bytes) -> None:
    with pytest.raises(ForgedMessage):
        sent(data)


def test_a_call_needs_no_place_in_the_source() -> None:
    assert parse_due(_DUE | {"calls": [_CALL | {"file": "a.py", "line": 4}]}).calls[0].line == 4
    assert parse_due(_DUE).calls[0].file == ""


def test_the_answer_has_the_form_of_the_protocol() -> None:
    ours, core = socket.socketpair()
    with ours, core:
        answer = CoreAnswer(ours)
        answer.put(3, 0, close_on_exec=True)
        answer.close(4)
        answer.watch(5, 3, 1)
        answer.set_timer(0, 10, 20)
        answer.lose_child(99)
        answer.settle(Settled(2, True, {"a": 1}))
        answer.settle(Settled(1, False))
        answer.end()
        answer.go_live()
        ours.close()
        data = b"".join(iter(lambda: core.recv(4096), b""))

    found = []
    while data:
        kind, length = data[:1], struct.unpack_from("<Q", data, 1)[0]
        found.append((kind, data[9 : 9 + length]))
        data = data[9 + length :]
    numbers = [(kind, struct.unpack(f"<{len(rest) // 8}q", rest)) for kind, rest in found[:5]]
    assert numbers == [(b"P", (3, 0, 1)), (b"C", (4,)), (b"E", (5, 3, 1)), (b"T", (0, 10, 20)), (b"K", (99,))]
    assert found[5][1][:16] == struct.pack("<qq", 2, 1) and decode_value(found[5][1][16:]) == {"a": 1}
    assert found[6:] == [(b"S", struct.pack("<qq", 1, 0)), (b"A", b""), (b"G", b"")]


def test_the_answer_was_followed_once_the_core_says_so() -> None:
    ours, core = socket.socketpair()
    with ours:
        with core:
            core.send(b"R")
            assert CoreAnswer(ours).is_followed()
        assert not CoreAnswer(ours).is_followed()  # it has ended


def test_descriptors_are_passed_in_messages_of_a_few(tmp_path: Path) -> None:
    count = MOST_DESCRIPTORS + 5
    null = os.open(os.devnull, os.O_RDONLY)
    ours, core = socket.socketpair()
    with ours, core:
        CoreAnswer(ours).pass_descriptors([null] * count)
        got: list[int] = []
        for _ in range(2):
            _, fds, _, _ = socket.recv_fds(core, 17, 253)
            got += fds
    os.close(null)
    for fd in got:
        os.close(fd)
    assert len(got) == count
