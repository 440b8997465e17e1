"""Recordings that the tests of the protocol share, and a client at each server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.mcp_client import McpClient
from tests.harness.recording import record_file
from tests.harness.typed import FAILS, TRAVEL


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of all clients of the tests."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="package")
def failing_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(FAILS, tmp_path_factory.mktemp("mcp"), status=1)


@pytest.fixture(scope="package")
def long_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(TRAVEL / "long_loop.py", tmp_path_factory.mktemp("mcp"))


@pytest.fixture
def clients(tmp_path: Path, store: Path) -> Iterator[Callable[..., McpClient]]:
    """Starts clients, and ends them after the test."""
    started: list[McpClient] = []

    def start(*options: str) -> McpClient:
        started.append(McpClient(tmp_path, *options, environ={"REPLAYDBG_STORE": str(store)}))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def client(clients: Callable[..., McpClient]) -> McpClient:
    """A client that has sent nothing yet."""
    return clients()
