"""Run a peer beside a program while it is recorded, unrecorded itself, and gone when it is replayed."""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.real.peers.postgres import directory_of_programs

# What stands in a command line for the port that both sides know.
PORT = "{port}"

_PEERS = Path(__file__).parent / "peers"
# A real server makes its files first; a client has to have its last answer.
_PATIENCE_SECONDS = 60.0
_END_SECONDS = 300.0
"""A server that had a hundred databases removes their files."""


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of `peers/`, and how it ends."""

    # Its file, without `.py`.
    name: str
    # What follows the port on its command line.
    arguments: tuple[str, ...] = ()
    # A client ends by itself, with 0 if it was answered well; a server when its stdin is closed.
    is_client: bool = False
    # Debian's package that it needs; None: nothing but Python.
    package: str | None = None
    is_installed: Callable[[], bool] = _always


SITE = Peer("web_site")
REDIS = Peer("redis_server", package="redis-server", is_installed=lambda: shutil.which("redis-server") is not None)
POSTGRES = Peer("postgres", package="postgresql", is_installed=lambda: directory_of_programs() is not None)


class PeerFailed(Exception):
    """A peer did not start, or was not content with what it was answered; the message says it."""


@contextmanager
def running_beside(peer: Peer | None, env: Mapping[str, str]) -> Iterator[int]:
    """Yields the port once `peer` is ready, and sees it end; 0 if there is none. Raises PeerFailed."""
    if peer is None:
        yield 0
        return
    port = _free_port()
    argv = [sys.executable, str(_PEERS / f"{peer.name}.py"), str(port), *peer.arguments]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            argv, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        try:
            _wait_until_ready(process, peer, errors)
            yield port
            _end(process, peer, errors)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def with_port(argv: Sequence[str], port: int) -> list[str]:
    """`argv`, the port in its place."""
    return [text.replace(PORT, str(port)) for text in argv]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(process: subprocess.Popen[bytes], peer: Peer, errors: IO[bytes]) -> None:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _PATIENCE_SECONDS)
    if not ready or process.stdout.readline() != b"ready\n":
        raise PeerFailed(f"the peer {peer.name} does not start: {_last_line(errors)}")


def _end(process: subprocess.Popen[bytes], peer: Peer, errors: IO[bytes]) -> None:
    if not peer.is_client and process.stdin is not None:
        process.stdin.close()
        process.stdin = None
    try:
        status = process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"the peer {peer.name} does not end") from None
    if status != 0:
        raise PeerFailed(f"the peer {peer.name} ended with {status}: {_last_line(errors)}")


def _last_line(errors: IO[bytes]) -> str:
    text = os.pread(errors.fileno(), os.fstat(errors.fileno()).st_size, 0).decode(errors="replace")
    return (text.strip().splitlines() or ["it said nothing"])[-1]
