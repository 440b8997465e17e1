"""The role of a pytest process in a recorded session: it runs tests, it shows results, or both."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from replaydbg.pytest_plugin.settings import is_worker
from replaydbg.pytest_plugin.startup import relaunch


def _asked() -> Any:
    """Import the module. Pytest's own importer would make requests that are recorded, and no recording has them.

    It uses the name of a file in the recording: tools that trace code, such as coverage, ask for its path.
    """
    from importlib.machinery import SourceFileLoader

    from replaydbg.pytest_plugin.child import recorded

    name = "replaydbg.pytest_plugin.child.lenient_replay"
    path = f"{recorded.__file__.rpartition('/')[0]}/lenient_replay.py"
    module = ModuleType(name)
    exec(compile(SourceFileLoader(name, path).get_data(path), recorded.__file__, "exec"), module.__dict__)
    return module


def register(config: pytest.Config) -> None:
    """Register the plugins of this process."""
    token = relaunch.launch_token()
    if token is not None:
        # Imported here and below: each process needs only its own part.
        question = relaunch.asked()
        if question is not None:
            config.pluginmanager.register(_asked().Asked(config, token, question), "replaydbg-recorded")
        else:
            from replaydbg.pytest_plugin.child.recorded import Recorded

            config.pluginmanager.register(Recorded(config, token), "replaydbg-recorded")
    if is_worker(config):
        return
    if relaunch.hands_out(config):
        from replaydbg.pytest_plugin.startup.workers import Workers

        config.pluginmanager.register(Workers(), "replaydbg-workers")
    elif token is None:
        return  # nothing is recorded, and a warning has given the reason
    from replaydbg.pytest_plugin.report.shown import Shown

    config.pluginmanager.register(Shown(config, token), "replaydbg-shown")
