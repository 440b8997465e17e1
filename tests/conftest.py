"""Set-up of the whole suite: independence of how it was started."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from replaydbg.debugger import Session
from replaydbg.render import texts
from tests.harness.recording import record_file
from tests.harness.stages import stages
from tests.harness.surroundings import is_steering, restore_signals
from tests.harness.tracebacks import add_missing_lines
from tests.harness.typed import FAILS, TRAVEL, Typed

collect_ignore_glob = ["pages/worlds/*"]
"""Tests of pages in the documentation, which fail as the pages say."""


def pytest_configure(config: pytest.Config) -> None:
    """Remove everything from the environment and the signals that programs under test would inherit."""
    for name in filter(is_steering, list(os.environ)):
        # The suite's own settings are read by tox alone.
        del os.environ[name]
    restore_signals()
    # How long it takes to draw values says more of what else the machine does than of the test.
    settings.register_profile("whole-suite", suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("whole-suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the second and the third stage."""
    found = stages()
    for item in items:
        if item.nodeid in found.long:
            item.add_marker(pytest.mark.long)
        elif item.nodeid in found.exhaustive:
            item.add_marker(pytest.mark.exhaustive)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Let a timeout that came at an instruction without a line fail its test alone."""
    if call.excinfo is not None:
        add_missing_lines(call.excinfo.value)
        if call.excinfo.tb is not call.excinfo.value.__traceback__:
            call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)


# ---- the debugger's prompt ----


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("prompt")
    return {
        "fails": record_file(FAILS, folder, status=1),
        "lanes": record_file(TRAVEL / "lanes_and_tasks.py", folder),
        "long": record_file(TRAVEL / "long_loop.py", folder),
    }


@pytest.fixture(scope="module")
def failing(recordings: dict[str, Path]) -> Iterator[Session]:
    with Session(recordings["fails"]) as session:
        yield session


@pytest.fixture(scope="module")
def there(failing: Session) -> str:
    """The moment at which line 12 runs with 3: it has another number under another version of Python."""
    return texts.moment_text(list(failing.run.log(FAILS.name, 12, "n"))[3].moment)


@pytest.fixture
def typed(failing: Session, there: str) -> Typed:
    """Return a new prompt at the exception."""
    return Typed.at("@exc", failing, there)
