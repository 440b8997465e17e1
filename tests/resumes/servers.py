"""The PostgreSQL server of the ledger that is kept in a database: private, on loopback, and ended with the tests."""

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.harness.surroundings import without_steering
from tests.real.peer import POSTGRES, running_beside
from tests.real.peers.postgres import directory_of_programs

_TIMEOUT = 60.0


def missing_postgres() -> str:
    """Return why no server can be started, or no program can talk to one; empty if both can."""
    if not POSTGRES.is_installed():
        return "PostgreSQL is not installed"
    if importlib.util.find_spec("pg8000") is None:
        return "pg8000 is not installed (tests/resumes/requirements.txt)"
    return ""


@contextmanager
def postgres() -> Iterator[int]:
    """Run a server in the block; return its port on 127.0.0.1. Raises PeerFailed."""
    with running_beside(POSTGRES, without_steering(os.environ)) as port:
        yield port


def make_database(port: int, name: str) -> None:
    """Make an empty database."""
    programs = directory_of_programs()
    assert programs is not None
    command = [str(programs / "createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", "tester", name]
    subprocess.run(command, check=True, timeout=_TIMEOUT)
