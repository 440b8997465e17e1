"""What the whole suite needs: no surprise from how it was started."""

import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Lets SIGINT have its default action again: a shell that starts the tests in the background ignores it.

    Programs under test inherit what is ignored, and several of them end by Ctrl-C.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
