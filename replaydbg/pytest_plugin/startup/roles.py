"""The role of a pytest process in a recorded session: it runs tests, it shows results, or both."""

from __future__ import annotations

import pytest

from replaydbg.pytest_plugin.settings import is_worker
from replaydbg.pytest_plugin.startup import relaunch


def register(config: pytest.Config) -> None:
    """Register the plugins of this process."""
    token = relaunch.launch_token()
    if token is not None:
        # Imported here and below: each process needs only its own part.
        # Both in each: a replay of edited code finds only those modules that were imported while recording.
        from replaydbg.pytest_plugin.child.lenient_replay import QuestionHooks
        from replaydbg.pytest_plugin.child.recorded import Recorded

        question = relaunch.asked()
        plugin = Recorded(config, token) if question is None else QuestionHooks(config, token, question)
        plugin.register()
    if is_worker(config):
        return
    if relaunch.hands_out(config):
        from replaydbg.pytest_plugin.startup.workers import Workers

        config.pluginmanager.register(Workers(), "replaydbg-workers")
    elif token is None:
        return  # nothing is recorded, and a warning has given the reason
    from replaydbg.pytest_plugin.report.shown import Shown

    config.pluginmanager.register(Shown(config, token), "replaydbg-shown")
