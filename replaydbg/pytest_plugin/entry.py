"""The module that pytest loads at each start, even if nothing is recorded: options, and the decision to record.

It imports next to nothing.
"""

from __future__ import annotations

import pytest

from replaydbg.pytest_plugin.settings import CHILDREN, MODES, capture_in_memory, mode_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

_state = {"is_active": False}
"""A pytest inside this process (pytester, `pytest.main` in a test) is part of the recorded one, and is not recorded
itself.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("replaydbg", "recordings of failing tests")
    group.addoption(
        "--replaydbg",
        choices=MODES,
        default=None,
        help="record the tests: `on` keeps a recording of each, `retain-on-failure` of those that fail, `retry` also "
        "of the later attempts of tests that are run again; `off` (default) records nothing",
    )
    group.addoption(
        "--replaydbg-dir", metavar="DIR", default=None, help="directory of the recordings (default: test-results)"
    )
    group.addoption(
        "--replaydbg-wait",
        metavar="SECONDS",
        default=None,
        help="how long the session waits at its end for recordings to be replayed and analysed (default: 10)",
    )
    group.addoption(
        "--replaydbg-bisect",
        action="store_true",
        default=False,
        help="for each failing assertion, find the line after which it became false",
    )
    group.addoption(
        "--replaydbg-html",
        action="store_true",
        default=False,
        help="write an HTML page about the failure beside the recording of each failing test",
    )
    group.addoption(
        "--replaydbg-children",
        choices=CHILDREN,
        default=None,
        help="child processes of tests to record, too: none, fork (forked children), python (also the Python programs "
        "that a test starts); they are kept with the test's recording (default: none)",
    )
    group.addoption(
        "--replaydbg-futures",
        metavar="N",
        default=None,
        help="record the tests, and run each N times more from where its body begins, its threads interleaved in "
        "another way each time (default: 0)",
    )
    _add_settings(parser)


def _add_settings(parser: pytest.Parser) -> None:
    """Declare the settings of configuration files."""
    parser.addini(
        "replaydbg_children", "which child processes of tests are recorded, too: none, fork, python", default="none"
    )
    parser.addini(
        "replaydbg_bisect",
        "for each failing assertion, find the line after which it became false",
        type="bool",
        default=False,
    )
    parser.addini(
        "replaydbg_html",
        "write an HTML page about the failure beside the recording of each failing test",
        type="bool",
        default=False,
    )
    parser.addini("replaydbg", "which recordings of tests are kept: off, on, retain-on-failure, retry", default="off")
    parser.addini("replaydbg_dir", "directory of the recordings", default="test-results")
    parser.addini(
        "replaydbg_wait",
        "seconds that the session waits at its end for recordings to be replayed and analysed",
        default="10",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Restart as a recorded process, if requested: before output is captured and the user's code runs."""
    if not _state["is_active"] and mode_of(early_config) != "off":
        capture_in_memory(early_config)
        # Imported here: an unrecorded session does not need it.
        from replaydbg.pytest_plugin.startup import relaunch

        relaunch.ensure_recorded(early_config)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins of a recorded session."""
    config.addinivalue_line(
        "markers",
        "replaydbg(mode): which recordings of this test are kept, if the session is recorded: "
        "off, on, retain-on-failure, retry",
    )
    config.addinivalue_line(
        "markers",
        "replaydbg_futures(n): how often this test is run from where its body begins, if the session is recorded with "
        "--replaydbg-futures",
    )
    if _state["is_active"] or mode_of(config) == "off":
        return
    _state["is_active"] = True
    config.add_cleanup(_leave)
    # Imported here, as above.
    from replaydbg.pytest_plugin.startup import roles

    roles.register(config)


@pytest.fixture
def replaydbg_recording(request: pytest.FixtureRequest) -> object:
    """The recording of this test: `path`, `mark(name)`, `snapshot(name)`, `keep()`."""
    # Imported here, as above.
    from replaydbg.pytest_plugin.child.recorded import recording_of

    return recording_of(request.node)


def _leave() -> None:
    _state["is_active"] = False
