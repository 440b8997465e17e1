"""The server at a port: one client after the other, and none that is no editor."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.dap import listening
from replaydbg.dap.listening import parsed_address
from replaydbg.errors import UsageError
from tests.harness.dap_client import COMMAND, DapClient
from tests.harness.process import run


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    command = [*COMMAND, "--listen", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("replaydbg: listening at 127.0.0.1:")
        yield int(line.rpartition(":")[2])
        process.terminate()


def test_clients_are_served_one_after_the_other(port: int, tmp_path: Path, failing_recording: Path) -> None:
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            client = DapClient(tmp_path, connection=connection)
            assert client.attach(failing_recording)["reason"] == "exception"
            connection.shutdown(socket.SHUT_RDWR)


def test_a_browser_is_hung_up_on(port: int, tmp_path: Path) -> None:
    body = b'Content-Length: 99\r\n\r\n{"seq": 1, "type": "request", "command": "initialize"}'
    with socket.create_connection(("127.0.0.1", port)) as connection:
        client = DapClient(tmp_path, connection=connection)
        client.send_bytes(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = client.next_message()
        assert answer is not None and not answer["success"]
        assert client.next_message() is None

    with socket.create_connection(("127.0.0.1", port)) as connection:
        DapClient(tmp_path, connection=connection).initialize()


def test_it_can_end_with_its_first_client(tmp_path: Path) -> None:
    command = [*COMMAND, "--listen", "localhost:0", "--once"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        number = int(process.stderr.readline().rpartition(":")[2])
        with socket.create_connection(("localhost", number)) as connection:
            client = DapClient(tmp_path, connection=connection)
            client.initialize()
            client.request("disconnect")

        assert process.wait(60) == 0


def test_only_a_port_has_a_first_client(tmp_path: Path) -> None:
    finished = run([*COMMAND, "--once"], cwd=tmp_path, env=dict(os.environ), timeout=20)

    assert finished.status == 2 and finished.stdout == b""
    assert finished.stderr == b"replaydbg: --once needs --listen: at the standard streams there is one editor only.\n"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("5678", ("127.0.0.1", 5678)),
        (":5678", ("127.0.0.1", 5678)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parsed_address(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "1:2:x", ":70000", "-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--listen"):
        parsed_address(text)


def test_a_port_that_is_taken_is_refused(port: int, tmp_path: Path) -> None:
    command = [*COMMAND, "--listen", str(port)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert found.returncode == 2
    assert "Cannot listen" in found.stderr


def test_the_user_at_the_other_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            peer = client.getsockname()
            assert not listening._is_of_other_user(peer)
            monkeypatch.setattr("os.getuid", lambda: 12345)
            # Root may connect to everything: these tests may run as root.
            assert listening._is_of_other_user(peer) is (Path("/proc/self").stat().st_uid != 0)
    assert not listening._is_of_other_user(("10.0.0.1", 80))
