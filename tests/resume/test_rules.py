"""Each kind of descriptor is there again, was lost as the program must expect, or is refused."""

import errno
import os
import select
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from replaydbg.events.linux import open_flags
from replaydbg.resources.kinds import (
    ChildProcess,
    Descriptor,
    Handle,
    LastFileWrite,
    MakingCall,
    OpenedEventFd,
    OpenedFile,
    OpenedMemory,
    OpenedOther,
    OpenedPipe,
    OpenedSocket,
    OpenedTimerFd,
    OpenResource,
    Resources,
    SocketState,
    TlsSession,
    Unknown,
)
from replaydbg.resume.digest import output_digest
from replaydbg.resume.plan_rows import AddressKept, CannotReopen, Fate
from replaydbg.resume.reopening import reopen_sockets
from replaydbg.resume.reopening.compare_files import content_differences
from replaydbg.resume.reopening.kept_addresses import AddressKeeper, keeper_of
from replaydbg.resume.reopening.reopen_sockets import reset_socket
from replaydbg.resume.reopening.rules import RULES, plan_resources
from tests.harness.waiting import wait_until

ORIGIN = MakingCall(5, 0, None)


def handle(*numbers: int, flags: int = os.O_RDWR) -> Handle:
    return Handle(tuple(Descriptor(each, ORIGIN, True, None) for each in numbers), ORIGIN, flags, ())


def file(
    path: Path, *, flags: int = os.O_RDWR, offset: int = 0, size: int = 0, last: LastFileWrite | None = None
) -> OpenedFile:
    return OpenedFile(handle(3, flags=flags), str(path), str(path), True, offset, size, False, last)


def sock(
    state: SocketState, *, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, bound: object = None,
    peer: object = None,
) -> OpenedSocket:  # fmt: skip
    return OpenedSocket(handle(4), family, kind, 0, state, bound, 5, peer, False, None, (), False, (), None)


def fate(opened: OpenResource) -> Fate:
    return RULES[type(opened)].plan(opened).fate


def test_a_file_is_opened_again_at_its_offset_and_not_emptied(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    opened = file(path, flags=os.O_RDWR | os.O_TRUNC | os.O_CREAT | os.O_EXCL, offset=4, size=10)

    fd = RULES[OpenedFile].reopen(opened)

    assert fate(opened) is Fate.REOPENED
    assert os.read(fd, 3) == b"456"
    os.close(fd)


def test_differences_on_the_disk_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    last = LastFileWrite(9, 2, 3, output_digest(b"234"))

    def differences() -> str:
        opened = file(path, offset=5, size=5, last=last)
        return " ".join((*RULES[OpenedFile].plan(opened).differences, *content_differences(opened)))

    assert "is gone" in differences()
    path.write_bytes(b"01")
    assert "is shorter: 2 bytes, recorded 5" in differences()
    path.write_bytes(b"01xyz")
    assert "has other content: bytes 2 to 5" in differences()
    path.write_bytes(b"01234")
    assert differences() == ""


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_a_lost_connection_was_reset(family: int) -> None:
    with reset_socket(family) as lost, pytest.raises(ConnectionResetError):
        lost.recv(1)
    with reset_socket(family) as lost, pytest.raises(OSError) as found:
        lost.send(b"x")
    assert found.value.errno in (errno.ECONNRESET, errno.EPIPE)


def test_a_listener_listens_again(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as before:
        before.bind(path)
        before.listen()
    opened = sock(SocketState.LISTENING, family=socket.AF_UNIX, bound=path)

    fd = RULES[OpenedSocket].reopen(opened)

    with socket.socket(fileno=fd) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        listener.accept()[0].close()
        with pytest.raises(CannotReopen, match="in use"):
            RULES[OpenedSocket].reopen(opened)


def test_the_plan_tells_that_an_address_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        row = RULES[OpenedSocket].plan(sock(SocketState.LISTENING, bound=other.getsockname()))

    assert (row.fate, row.reason) == (Fate.REFUSED, "Address already in use")


def test_an_address_that_is_let_go_between_two_looks_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as keeps:
        keeps.bind(("127.0.0.1", 0))
        opened = sock(SocketState.LISTENING, bound=keeps.getsockname())

        def looks(host: str, port: int) -> AddressKeeper:
            keeps.close()
            return keeper_of(host, port)

        monkeypatch.setattr(reopen_sockets, "keeper_of", looks)
        with socket.socket(fileno=RULES[OpenedSocket].reopen(opened)) as again:
            assert again.getsockname() == opened.bound


def test_an_address_that_a_program_only_has_bound_is_taken_by_it() -> None:
    with socket.socket() as keeps:  # the kernel lists it nowhere
        keeps.bind(("127.0.0.1", 0))
        with pytest.raises(CannotReopen, match="already in use") as found:
            RULES[OpenedSocket].reopen(sock(SocketState.LISTENING, bound=keeps.getsockname()))

    assert not isinstance(found.value, AddressKept)


def test_a_datagram_socket_is_bound_again() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()

    fd = RULES[OpenedSocket].reopen(sock(SocketState.BOUND, kind=socket.SOCK_DGRAM, bound=address))

    with socket.socket(fileno=fd) as made:
        assert made.getsockname() == address


def test_a_pipe_to_another_process_has_ended() -> None:
    reader = RULES[OpenedPipe].reopen(OpenedPipe(handle(3), "read", None, ()))
    writer = RULES[OpenedPipe].reopen(OpenedPipe(handle(4), "write", None, ()))

    assert os.read(reader, 1) == b""
    with pytest.raises(BrokenPipeError):
        os.write(writer, b"x")
    os.close(reader)
    os.close(writer)


def test_an_eventfd_has_its_count() -> None:
    fd = RULES[OpenedEventFd].reopen(OpenedEventFd(handle(3), 7, False))

    assert os.eventfd_read(fd) == 7
    os.close(fd)


def test_what_cannot_be_brought_back_is_refused_by_name(tmp_path: Path) -> None:
    unknown = Unknown("it is not recorded")
    refused: list[OpenResource] = [
        OpenedOther(handle(3), "signalfd", "it was made by a C library"),
        OpenedTimerFd(handle(3), 1, None, None),
        OpenedMemory(handle(3), "memory", False, False, 0, 0, None),
        OpenedEventFd(handle(3), unknown, False),
        OpenedFile(handle(3), "x", unknown, True, 0, 0, False, None),
        OpenedFile(handle(3), "x", str(tmp_path / "x"), True, 0, 0, True, None),
        sock(SocketState.CONNECTED, family=socket.AF_NETLINK),
        replace(sock(SocketState.CONNECTED), pair=(5,), tls=TlsSession(MakingCall(1, 0, None), True, None, 4)),
    ]

    assert [fate(each) for each in refused] == [Fate.REFUSED] * len(refused)
    assert all(RULES[type(each)].plan(each).reason for each in refused)


def test_a_pidfd_reads_as_one_whose_process_ended() -> None:
    from replaydbg.resources.kinds import OpenedPidFd

    with ExitStack() as stack:
        fd = RULES[OpenedPidFd].reopen(OpenedPidFd(handle(3), 99))
        stack.callback(os.close, fd)
        assert select.select([fd], [], [], 0)[0] == [fd]


def test_what_became_of_a_child() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        wait_until((Path("/proc") / str(child.pid) / "cmdline").read_bytes)  # it has none for a moment
        assert _became_of(child.pid, "sleep", "60") == "still runs"
        assert _became_of(child.pid, "cat") == "still runs, or its process id now belongs to another process"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert _became_of(child.pid, "sleep", "60") == "no longer exists"
    assert _became_of(child.pid, "sleep", "60") == "no longer exists"


def _became_of(pid: int, *command: str) -> str:
    child = ChildProcess(pid, command, False, None, ORIGIN)
    none = dict.fromkeys(("opened", "mappings", "databases", "locks", "threads", "timers", "signals"), ())
    resources = Resources(
        5,
        "/",
        **none,
        wakeup=None,
        children=(child,),
        semaphores=(),
        tls=(),
        tls_loads=(),
        standard_input=None,
        open_flags=open_flags(""),
    )
    (row,) = (each for each in plan_resources(resources, frozenset()) if each.kind == "children")
    return row.text.rpartition("which ")[2]
