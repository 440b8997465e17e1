"""Recordings that the tests of the protocol share, and a client at each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.dap_client import DapClient
from tests.harness.recording import record_file
from tests.harness.typed import FAILS, TRAVEL


@pytest.fixture(scope="package")
def failing_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("dap"), status=1)


@pytest.fixture(scope="package")
def lanes_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "lanes_and_tasks.py", tmp_path_factory.mktemp("dap"))


@pytest.fixture(scope="package")
def long_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "long_loop.py", tmp_path_factory.mktemp("dap"))


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Callable[[], DapClient]]:
    """Starts clients, and ends them after the test."""
    started: list[DapClient] = []

    def start() -> DapClient:
        started.append(DapClient(tmp_path))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def client(clients: Callable[[], DapClient]) -> DapClient:
    """A client that has sent nothing yet."""
    return clients()


@pytest.fixture
def failed(client: DapClient, failing_recording: Path) -> DapClient:
    """A client at the failure of a program."""
    client.attach(failing_recording)
    return client


@pytest.fixture
def lanes(client: DapClient, lanes_recording: Path) -> DapClient:
    """A client at the end of a program with threads and tasks."""
    client.attach(lanes_recording)
    return client
