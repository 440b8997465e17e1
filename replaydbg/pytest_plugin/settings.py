"""Settings from pytest's options and configuration files.

Every pytest of the environment loads it: it imports nothing.
"""

from __future__ import annotations

import os

import pytest

MODES = ("off", "on", "retain-on-failure", "retry")
"""Which recordings of tests are kept."""

CHILDREN = ("none", "fork", "python")
"""Which child processes of tests are recorded, too."""


def mode_of(config: pytest.Config) -> str:
    """Return the mode from the option or the configuration file. Raises UsageError."""
    given = getattr(config.known_args_namespace, "replaydbg", None)
    mode = str(given or config.getini("replaydbg") or "off")
    if mode not in MODES:
        raise pytest.UsageError(f"replaydbg = {mode!r} is not a mode: use one of {', '.join(MODES)}")
    return "retain-on-failure" if mode == "off" and futures_of(config) is not None else mode


def futures_of(config: pytest.Config) -> int | None:
    """Return how many futures each test has; None: the option is not given. Raises UsageError."""
    given = getattr(config.known_args_namespace, "replaydbg_futures", None)
    if given is None:
        return None
    count = int(given) if str(given).isascii() and str(given).isdigit() else -1
    if count < 0:
        raise pytest.UsageError(f"--replaydbg-futures={given} must be a number of futures from 0 on")
    return count


def futures_of_test(item: pytest.Item) -> int:
    """Return how many futures a test has; 0 without the option. Raises UsageError."""
    count = futures_of(item.config)
    marker = item.get_closest_marker("replaydbg_futures")
    if count is None or marker is None:
        return count or 0
    given: object = marker.args[0] if marker.args else marker.kwargs.get("n", count)
    if type(given) is not int or given < 0:
        raise pytest.UsageError(f"{item.nodeid}: the marker replaydbg_futures must have a number from 0 on")
    return given


def capture_in_memory(config: pytest.Config) -> None:
    """Have output captured in memory if tests have futures: these can write no files, not even pytest's own."""
    options = config.known_args_namespace
    if futures_of(config) is not None and getattr(options, "capture", None) == "fd":
        options.capture = "sys"


def directory_of(config: pytest.Config) -> str:
    """Return the directory of the recordings."""
    given = getattr(config.known_args_namespace, "replaydbg_dir", None)
    return os.path.abspath(str(given or config.getini("replaydbg_dir")))  # noqa: PTH100 - pathlib resolves links


def bisects(config: pytest.Config) -> bool:
    """Whether each failing assertion is bisected."""
    return bool(getattr(config.known_args_namespace, "replaydbg_bisect", False) or config.getini("replaydbg_bisect"))


def makes_pages(config: pytest.Config) -> bool:
    """Whether a page is made of each failure."""
    return bool(getattr(config.known_args_namespace, "replaydbg_html", False) or config.getini("replaydbg_html"))


def children_of(config: pytest.Config) -> str:
    """Return which child processes are recorded, too. Raises UsageError."""
    given = getattr(config.known_args_namespace, "replaydbg_children", None)
    children = str(given or config.getini("replaydbg_children"))
    if children not in CHILDREN:
        raise pytest.UsageError(f"replaydbg_children = {children!r} is unknown: use one of {', '.join(CHILDREN)}")
    return children


def is_worker(config: pytest.Config) -> bool:
    """Whether this is a worker process of pytest-xdist. While options are read, none can be recognised yet."""
    return hasattr(config, "workerinput")


def wait_of(config: pytest.Config) -> float:
    """Return the maximum time for which the end of the session waits, in seconds. Raises UsageError."""
    given = getattr(config.known_args_namespace, "replaydbg_wait", None)
    text = str(given or config.getini("replaydbg_wait"))
    try:
        seconds = float(text)
    except ValueError:
        raise pytest.UsageError(f"replaydbg_wait = {text!r} must be a number of seconds") from None
    if not seconds >= 0:  # NaN, too
        raise pytest.UsageError(f"replaydbg_wait = {text!r} must be at least 0 seconds")
    return seconds
