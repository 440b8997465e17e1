"""Which part a process of pytest has in a recorded session: it runs tests, it shows results, or both."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from replaydbg.pytest_plugin import relaunch


def _asked() -> Any:
    """Import the module. Pytest's own importer would look for it by ways that are recorded, and no recording has it.

    It passes for a file that the recording has: who looks at what runs, as coverage does, asks where that lies.
    """
    from importlib.machinery import SourceFileLoader

    from replaydbg.pytest_plugin import recorded

    name = "replaydbg.pytest_plugin.lenient_replay"
    path = f"{__file__.rpartition('/')[0]}/lenient_replay.py"
    module = ModuleType(name)
    exec(compile(SourceFileLoader(name, path).get_data(path), recorded.__file__, "exec"), module.__dict__)
    return module


def register(config: pytest.Config) -> None:
    """Register the plugins of this process."""
    token = relaunch.launch_token()
    if token is not None:
        # Imported here and below: each process needs its own part alone.
        question = relaunch.asked()
        if question is not None:
            config.pluginmanager.register(_asked().Asked(config, token, question), "replaydbg-recorded")
        else:
            from replaydbg.pytest_plugin.recorded import Recorded

            config.pluginmanager.register(Recorded(config, token), "replaydbg-recorded")
    if relaunch.is_worker(config):
        return
    if relaunch.hands_out(config):
        from replaydbg.pytest_plugin.workers import Workers

        config.pluginmanager.register(Workers(), "replaydbg-workers")
    elif token is None:
        return  # nothing is recorded, and a warning has said why
    from replaydbg.pytest_plugin.shown import Shown

    config.pluginmanager.register(Shown(config, token), "replaydbg-shown")
