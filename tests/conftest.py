"""What the whole suite needs: no surprise from how it was started."""

import os
import signal

import pytest

from tests.harness.surroundings import is_steering


def pytest_configure(config: pytest.Config) -> None:
    """Lets SIGINT have its default action again: a shell that starts the tests in the background ignores it.

    Programs under test inherit what is ignored, and several of them end by Ctrl-C. They inherit the environment too.
    """
    for name in filter(is_steering, list(os.environ)):
        # The suite's own settings are read by tox alone.
        del os.environ[name]
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
