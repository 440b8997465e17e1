"""Makes pytest start again as a recorded process: the recorder is there from an interpreter's start, or not at all."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from replaydbg.launch import interpreter
from replaydbg.launch.asked import VARIABLE
from replaydbg.pytest_plugin import shared_names
from replaydbg.pytest_plugin.settings import bisects, directory_of

START = (
    "import sys;del sys.path[0];"
    "from replaydbg.pytest_plugin.launcher import main;main(sys.argv[1], sys.orig_argv[sys.orig_argv.index('-c') + 3:])"
)
"""The command of the launcher. The working directory is no place to import the tool from."""

_PROGRAMS = ("pytest", "py.test", "coverage")


_token: list[shared_names.LaunchToken | None] = [None]
_is_given_up = [False]
"""Whether this process was a launcher, which found that nothing can be recorded, and said so."""


def launch_token() -> shared_names.LaunchToken | None:
    """Return what the launcher of this process says; None: there is none. The variable that said it is gone then.

    Tests compare the environment, print it, and hand it on.
    """
    text = os.environ.pop(shared_names.VARIABLE, "")
    if text:
        _token[0] = shared_names.read_launch_token(text)
        _is_given_up[0] = text == shared_names.unrecorded(os.getpid())
    return _token[0]


def asked() -> dict[str, Any] | None:
    """Return what is asked in a replay of edited code; None: nothing, it is recorded, or replayed as it was."""
    text = os.environ.pop(VARIABLE, "")
    found: dict[str, Any] | None = json.loads(text) if text else None
    return found


def ensure_recorded(config: pytest.Config) -> None:
    """Replace this process by the launcher of the same command, unless it is recorded, or hands the tests to others."""
    if is_worker(config) or hands_out(config) or launch_token() is not None or _is_given_up[0]:
        return
    own, words = interpreter.leading_options(sys.orig_argv[1:])
    reason = why_not(words)
    if reason:
        config.issue_config_time_warning(
            pytest.PytestConfigWarning(f"replaydbg records nothing: {reason}"), stacklevel=2
        )
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(sys.executable, [sys.executable, *own, "-c", START, orders(config), *words])


def orders(config: pytest.Config) -> str:
    """Return the orders of the launcher."""
    asked: dict[str, Any] = {"directory": directory_of(config), "bisects": bisects(config)}
    return json.dumps(asked)


def why_not(words: list[str]) -> str:
    """Return why the command that started this process cannot simply be started again; empty: it can."""
    if not words:
        return "pytest runs inside an interactive interpreter"
    name = words[1] if words[0] == "-m" and len(words) > 1 else words[0]
    base = os.path.basename(os.path.dirname(name) if name.endswith("__main__.py") else name)  # noqa: PTH119,PTH120
    if base.removesuffix(".py") in _PROGRAMS:
        return ""
    # It may have done anything until here, and would do it twice.
    return f"pytest was started by {base!r}; record that as a whole, with `replaydbg record`"


def is_worker(config: pytest.Config) -> bool:
    """Whether this is a process of pytest-xdist that runs tests. While options are read, none looks like one yet."""
    return hasattr(config, "workerinput")


def hands_out(config: pytest.Config) -> bool:
    """Whether pytest-xdist is to run the tests in other processes."""
    options = config.known_args_namespace
    if getattr(options, "usepdb", False):
        return False
    return bool(getattr(options, "numprocesses", None) or getattr(options, "tx", None))
