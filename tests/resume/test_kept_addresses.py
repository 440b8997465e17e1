"""A program listens again once its closed connections no longer keep the address, and its resumption waits for that."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replaydbg.resume.reopening.kept_addresses import AddressKeeper, keeper_of
from tests.harness.process import run
from tests.harness.sanitizer import SLOWER
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.recovery.killed_groups import rows_of, waits

pytestmark = pytest.mark.slow

_TIMEOUT = 30.0 * SLOWER
_KEPT = 7 * SLOWER
"""Seconds: longer than it takes to the program's last event, on a machine with other work, too."""
# The kernel keeps a closed connection for {seconds} s while the other side is open, then for 60 s once that is closed.
_PROGRAM = """import os, socket, subprocess, sys
{begins}
with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(os.getpid(), listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, {seconds})
    connection.close()
    print("closed", flush=True)
    connection, _ = listener.accept()
    print(connection.recv(10))
"""
_WAITS = b"closed connections of the program keep it, for about a minute"


def _env(folder: Path) -> dict[str, str]:
    return dict(without_steering(os.environ)) | {"REPLAYDBG_STORE": str(folder / "store")}


@contextmanager
def recorded(
    folder: Path, *, begins: str = "", seconds: int = _KEPT, options: tuple[str, ...] = ("--children=none",)
) -> Iterator[tuple[int, int]]:
    """Record the program; yield its process id and its port while only a closed connection keeps that."""
    (folder / "program.py").write_text(_PROGRAM.format(begins=begins, seconds=seconds))
    command = [sys.executable, "-m", "replaydbg", "record", "-q", *options, "-o", "one.rdbg", "program.py"]
    with subprocess.Popen(
        command, cwd=folder, env=_env(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as recorder:
        assert recorder.stdout is not None
        pid, port = map(int, recorder.stdout.readline().split())
        with socket.create_connection(("127.0.0.1", port)):
            assert recorder.stdout.readline() == b"closed\n"
            try:
                yield pid, port
            finally:
                recorder.kill()


@contextmanager
def resuming(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Resume the program in the block; what is printed is in the files `printed` and `said`."""
    command = [sys.executable, "-m", "replaydbg", "resume", *words, "-o", "two.rdbg"]
    with (
        (folder / "printed").open("wb") as printed,
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            command, cwd=folder, env=_env(folder), stdin=subprocess.DEVNULL, stdout=printed, stderr=said
        ) as resumed,
    ):
        try:
            yield resumed
        finally:
            resumed.kill()


def wait_for(folder: Path, sentence: bytes, resumed: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: sentence in (folder / "said").read_bytes() or resumed.poll() is not None, _TIMEOUT)
    assert sentence in (folder / "said").read_bytes()


def serve(folder: Path, port: int, resumed: subprocess.Popen[bytes]) -> None:
    """Wait until the program is live, and be its next client."""
    wait_for(folder, b"reopened   listeners", resumed)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.send(b"hello")
        assert resumed.wait(_TIMEOUT) == 0
    # What it was printing when it was killed is printed again, since it is another stream now.
    assert (folder / "printed").read_bytes().removeprefix(b"closed\n") == b"b'hello'\n"


def test_a_resumption_waits_and_says_so(tmp_path: Path) -> None:
    with recorded(tmp_path) as (pid, port):
        os.kill(pid, signal.SIGKILL)
        with resuming(tmp_path, "one.rdbg") as resumed:
            serve(tmp_path, port, resumed)

    assert f"waiting for 127.0.0.1:{port}: ".encode() + _WAITS in (tmp_path / "said").read_bytes()


def test_the_plan_says_it_at_once(tmp_path: Path) -> None:
    with recorded(tmp_path, seconds=30) as (pid, port):
        os.kill(pid, signal.SIGKILL)
        words = [sys.executable, "-m", "replaydbg", "resume", "one.rdbg", "--plan"]
        planned = run(words, cwd=tmp_path, env=_env(tmp_path), timeout=_TIMEOUT)

    sentence = "waits until closed connections no longer keep the address, about a minute"
    assert f"listeners: 127.0.0.1:{port} (descriptor 3): {sentence}".encode() in planned.stdout


def test_a_standby_waits(tmp_path: Path) -> None:
    with recorded(tmp_path) as (pid, port):
        with resuming(tmp_path, "one.rdbg", "--follow", "--in-flight=repeat") as standby:
            wait_for(tmp_path, b"hot standby for", standby)
            os.kill(pid, signal.SIGKILL)
            serve(tmp_path, port, standby)

    assert _WAITS in (tmp_path / "said").read_bytes()


def test_a_group_waits(tmp_path: Path) -> None:
    begins = "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)"
    with recorded(tmp_path, begins=begins, options=()) as (pid, port):
        # Before that the line is before the child's start, and what is printed after it is printed again.
        wait_until(lambda: [waits(each.pid) for each in rows_of(tmp_path / "one.rdbgs")] == [True, True], _TIMEOUT)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any((tmp_path / "one.rdbgs").glob("*-live")), _TIMEOUT)
        with resuming(tmp_path, "one.rdbgs") as resumed:
            serve(tmp_path, port, resumed)

    assert _WAITS in (tmp_path / "said").read_bytes()


@pytest.mark.parametrize("follow", [False, True], ids=["resume", "standby"])
def test_an_interrupt_ends_the_wait(follow: bool, tmp_path: Path) -> None:
    with recorded(tmp_path, seconds=60) as (pid, _):
        words = ("--follow", "--in-flight=repeat") if follow else ()
        if not follow:
            os.kill(pid, signal.SIGKILL)
        with resuming(tmp_path, "one.rdbg", *words) as resumed:
            if follow:
                wait_for(tmp_path, b"hot standby for", resumed)
                os.kill(pid, signal.SIGKILL)
            wait_for(tmp_path, _WAITS, resumed)
            resumed.send_signal(signal.SIGINT)
            assert resumed.wait(5) in (-signal.SIGINT, 128 + signal.SIGINT)

    assert not list(tmp_path.glob("two*"))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_an_address_that_a_program_has_open_is_not_waited_for(host: str) -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        assert keeper_of(host, server.getsockname()[1]) is AddressKeeper.PROGRAM
