"""The plugin in the pytest-xdist process that distributes the tests: each worker is started as a recorded process."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import pytest

from replaydbg.pytest_plugin.startup import relaunch
from replaydbg.pytest_plugin.startup.early import START


class Workers:
    """The plugin's hooks."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: list[Any]) -> None:
        """Have execnet start our launcher in place of the interpreter; its arguments are then the program to record."""
        for spec in specs:
            if getattr(spec, "popen", False) and not getattr(spec, "python", None):
                words = [sys.executable, "-c", START, relaunch.orders(config)]
                spec.python = shlex.join(words)
