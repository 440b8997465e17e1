"""The debugger checks every message of the program that it debugs.

A forged or malformed message ends the session with one sentence, and no process is killed that the session did not
start.
"""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaydbg.debugger.first_pass.run_index import RunEnding, _index
from replaydbg.debugger.session import Session
from replaydbg.engine import pictures, reports
from replaydbg.engine.cell_queries import CELL_QUERIES
from replaydbg.engine.completion.offers import OFFER_QUERIES
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.engine_socket import EngineSocket
from replaydbg.engine.keeping import Keeping, is_own_child
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.queries import QUERIES, answer_shape
from replaydbg.errors import EngineLost, ForgedMessage, ReplaydbgError
from replaydbg.log.coding.encode import encode_value
from replaydbg.log.coding.shapes import decoded
from replaydbg.replay.clock import Orders
from replaydbg.replay.clock import read_report as read_clock
from replaydbg.replay.report import read_report
from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

_PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.lists(inner, max_size=8).map(tuple)
        | st.dictionaries(st.sampled_from([*reports._WHERE, "kind", "detail", "status", "failed"]), inner, max_size=10)
    ),
    max_leaves=30,
)
_FRAME = ["/p.py", 3, "f", 1, 2, 3, 0, 0, 0]
_POSITION = {
    "why": "count",
    "count": 5,
    "point": 0,
    "event": 1,
    "digest": -7,
    "lane": 0,
    "lanes": [[0, "MainThread", 0, "", 5, 4, [_FRAME]]],
    "stack": [_FRAME],
    "depth": 1,
    "breakpoints": [[0, 0, 0]],
    "watches": [[0, 0, 0, 0, 0, 0]],
    "path": [0, [], [], []],
}
_QUERIES = (*QUERIES.values(), *CELL_QUERIES.values(), *OFFER_QUERIES.values())
_READERS: list[Callable[[bytes], object]] = [
    reports.read_where,
    reports.read_stack,
    reports.read_here,
    reports.read_located,
    reports.read_number,
    reports.read_ended,
    read_report,
    lambda data: read_clock(data, data, Orders()),
    lambda data: _read_index(data),
    *(
        lambda data, query=query: decoded(data, answer_shape(query), "answer")
        for query in (*QUERIES.values(), *CELL_QUERIES.values(), *OFFER_QUERIES.values())
    ),
]


def _read_index(data: bytes) -> object:
    report: dict[str, object] = {"is_on": 1, "lines": 3, "own": 3, "since": 0, "event": 1, "digest": 1}
    report |= {"hits": [], "breakpoints": [], "stopped": 0, "before": [], "uncaught": []}
    index = _index([encode_value(report), b"", data, data], RunEnding("", 1, is_script=False))
    return index.raised, index.output


@pytest.mark.parametrize("read", _READERS)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.binary(max_size=200) | _PLAIN.map(encode_value))
def test_a_reader_returns_or_refuses(read: Callable[[bytes], object], data: bytes) -> None:
    with suppress(ReplaydbgError):
        read(data)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(field=st.sampled_from(sorted(_POSITION)), value=_PLAIN)
def test_a_position_with_one_other_field_is_read_or_refused(field: str, value: object) -> None:
    with suppress(ForgedMessage):
        where = reports.read_where(encode_value(_POSITION | {field: value}))
        assert all(isinstance(each.file, str) for each in where.stack)
        assert isinstance(where.count, int)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    entries=st.lists(
        st.tuples(*[_PLAIN] * 6)
        | st.tuples(st.integers(0, 9), st.integers(0, 2), st.text(), st.text(), st.integers(), st.integers()),
        max_size=5,
    )
)
def test_exceptions_are_read_or_refused(entries: list[tuple[Any, ...]]) -> None:
    with suppress(ForgedMessage):
        _read_index(b"".join(encode_value(list(each)) for each in entries))


# ---- sockets: the filter's refusals are not relied upon ----


@pytest.fixture
def pair() -> Iterator[tuple[EngineProcess, socket.socket]]:
    """A worker, and the end of its socket that the program has."""
    own, programs = socket.socketpair()
    debugger, keepers = socket.socketpair()
    worker = EngineProcess(EngineSocket(own.detach()), Keeping(debugger, os.getpid()), 0, 0, 0)
    programs.settimeout(10)
    with keepers, programs, debugger:
        yield worker, programs
        worker.close()


def _message(kind: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<I", len(payload) + 1) + kind + payload


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(data=st.binary(max_size=300) | st.builds(_message, st.binary(min_size=1, max_size=1), _PLAIN.map(encode_value)))
def test_what_comes_through_a_socket_is_understood_or_ends_the_session(data: bytes) -> None:
    own, programs = socket.socketpair()
    debugger, keepers = socket.socketpair()
    with keepers, debugger, programs:
        worker = EngineProcess(EngineSocket(own.detach()), Keeping(debugger, os.getpid()), 0, 0, 0)
        programs.sendall(data)
        programs.shutdown(socket.SHUT_WR)
        with suppress(EngineLost, ForgedMessage):
            worker.await_stop()
        worker.close()


def _descriptors() -> list[str]:
    return sorted(each.name for each in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("kind", ["none", "a file", "a pipe", "a listener", "of another family", "two"])
def test_a_checkpoint_without_a_socket_ends_the_session(pair: tuple[EngineProcess, socket.socket], kind: str) -> None:
    worker, programs = pair
    data = _message(b"C", encode_value([os.getpid(), 1, 1]))
    read, write = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener, socket.socket() as other, Path(os.devnull).open() as file:
        listener.bind("\0" + os.urandom(8).hex())
        listener.listen()
        sent = {
            "none": [],
            "a file": [file.fileno()],
            "a pipe": [read],
            "a listener": [listener.fileno()],
            "of another family": [other.fileno()],
            "two": [programs.fileno(), programs.fileno()],
        }[kind]
        socket.send_fds(programs, [data], sent)
        before = _descriptors()
        with pytest.raises(ForgedMessage):
            worker.clone()
        # The sent descriptors, the worker's socket, and the one to the keeper are closed.
        assert len(_descriptors()) == len(before) - 2
    os.close(read)
    os.close(write)


def test_a_process_of_another_parent_ends_the_session_and_lives_on(pair: tuple[EngineProcess, socket.socket]) -> None:
    worker, programs = pair
    mine, others = socket.socketpair()
    with mine, others, subprocess.Popen(["sleep", "60"]) as victim:
        worker._keeping.pid = 1  # the keeper is another process than this one, which is the victim's parent
        socket.send_fds(programs, [_message(b"C", encode_value([victim.pid, 1, 1]))], [others.fileno()])
        with pytest.raises(ForgedMessage, match=f"named process {victim.pid}"):
            worker.clone()
        assert victim.poll() is None
        victim.kill()


def test_a_number_that_is_nobodys_is_never_used(pair: tuple[EngineProcess, socket.socket]) -> None:
    worker, programs = pair
    mine, others = socket.socketpair()
    with mine, others:
        socket.send_fds(programs, [_message(b"C", encode_value([(1 << 31) - 1, 1, 1]))], [others.fileno()])
        copy = worker.clone()
        assert copy.pid == 0
        copy.close()


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", 0),
        struct.pack("<I", (1 << 32) - 1) + b"S",
        _message(b"Z"),
        _message(b"S", encode_value(_POSITION | {"count": "5"})),
        _message(b"S", encode_value({})),
        _message(b"E", encode_value({"kind": 5})),
        _message(b"E", encode_value({"kind": "exit"})),
        _message(b"E", encode_value({"kind": "drift"})) * 2,
        _message(b"K", encode_value([1, 2])),
    ],
)
def test_a_malformed_message_ends_the_session(pair: tuple[EngineProcess, socket.socket], data: bytes) -> None:
    worker, programs = pair
    programs.sendall(data)
    with pytest.raises(ForgedMessage):
        worker.run(RunOrder())
    assert worker.fileno() == -1
    assert worker._keeping.broken


def test_one_that_sends_byte_by_byte_can_be_given_up(pair: tuple[EngineProcess, socket.socket]) -> None:
    worker, programs = pair
    looks = iter(range(10))

    class GivenUp(Exception):
        pass

    def idle() -> None:
        programs.sendall(b"\0\0")  # so that there is always data
        if next(looks, None) is None:
            raise GivenUp

    programs.sendall(struct.pack("<I", 1 << 20))
    with pytest.raises(GivenUp):
        worker.await_stop(idle=idle)


def test_the_keeper_knows_its_own_children() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert is_own_child(child.pid)
        assert not is_own_child(os.getpid())
        assert not is_own_child(1)
        assert not is_own_child(0)
        assert not is_own_child(-child.pid)
        child.kill()
        child.wait()
        assert not is_own_child(child.pid)


# ---- snapshots of heaps ----


@pytest.mark.parametrize("content", [b"", b"RDBGHEAP", b"RDBGHEAP" + bytes(300), os.urandom(5000)])
@pytest.mark.parametrize("is_sealable", [True, False])
def test_a_malformed_snapshot_is_refused(content: bytes, is_sealable: bool) -> None:
    fd = os.memfd_create("picture", os.MFD_ALLOW_SEALING if is_sealable else 0)
    os.write(fd, content)
    with pytest.raises(ForgedMessage):
        pictures.read_picture(fd, 1 << 20, run="")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_snapshot_that_is_too_long_is_not_read() -> None:
    fd = os.memfd_create("picture")
    os.ftruncate(fd, 1 << 50)
    with pytest.raises(ForgedMessage, match="too long"):
        pictures.read_picture(fd, 1 << 20, run="")


# ---- a program that forges messages ----

_HOSTILE = Path(__file__).parents[1] / "harness" / "hostile_program.py"


def test_a_program_that_speaks_in_the_engines_name_kills_nobody(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "300"]) as victim:
        recording = record_file(_HOSTILE, tmp_path, str(victim.pid))

        command = [sys.executable, "-m", "replaydbg", "debug", str(recording)]
        done = subprocess.run(
            command,
            input="reverse-next\nquit\n",
            cwd=tmp_path,
            env=without_steering(os.environ),
            capture_output=True,
            text=True,
            timeout=60,
        )

        assert victim.poll() is None
        victim.kill()
    said = done.stdout + done.stderr
    if done.returncode == 3:
        assert "sent an invalid message" in done.stderr.splitlines()[-1], said
    else:  # the filter refused the attempt, before any message was received
        assert done.returncode in (0, 1), said
        assert "tried to reach the outside" in said, said
    assert "Traceback" not in said


def test_a_process_that_forbade_its_end_with_the_keeper_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "stays.py").write_text(
        "import ctypes, time\nctypes.CDLL(None).prctl(1, 0)\nfor number in range(50):\n    time.time()\n"
    )
    with Session(record_file(tmp_path / "stays.py", tmp_path)) as session:
        standing = session.travel.timeline.processes()
        assert standing
    wait_until(lambda: not any(map(_runs, standing)))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
