"""A program that uses ZeroMQ by itself: what libzmq's threads brought it is in its recording."""

from pathlib import Path

import pytest

from tests.harness.replays import assert_replays

pytest.importorskip("zmq", reason="only `tox -e jupyter` installs pyzmq")

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.slow
def test_sockets_are_replayed() -> None:
    assert_replays(PROGRAMS / "zmq_sockets.py", status=0, replays=5)
