"""Restart pytest as a recorded process: the recorder must be present from the interpreter's start."""

from __future__ import annotations

import os
import sys

import pytest

from replaydbg.launch.replay_question import VARIABLE, TestQuestion, read_question
from replaydbg.pytest_plugin.settings import bisects, children_of, directory_of, is_worker, makes_pages
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.startup.early import START

_PROGRAMS = ("pytest", "py.test", "coverage")


_token: list[shared_names.LaunchToken | None] = [None]
_audit = sys.audit  # bound now: tests replace functions of modules
_is_given_up = [False]
"""Whether this process was a launcher that found that nothing can be recorded, and has reported it."""


def launch_token() -> shared_names.LaunchToken | None:
    """Return the token from this process's launcher; None: there is none. Removes its environment variable.

    Tests compare the environment, print it, and pass it on.
    """
    text = os.environ.pop(shared_names.VARIABLE, "")
    if text:
        _token[0] = shared_names.read_launch_token(text)
        _is_given_up[0] = text == shared_names.unrecorded(os.getpid())
    return _token[0]


def asked() -> TestQuestion | None:
    """Return the question in a replay of edited code; None: the process is recorded, or is another replay."""
    text = os.environ.pop(VARIABLE, "")
    return read_question(text) if text else None


def ensure_recorded(config: pytest.Config) -> None:
    """Replace this process by the launcher of the same command, unless it is recorded, or distributes the tests."""
    token = launch_token()
    # In a replay of edited code the options may be others, and nothing is recorded.
    if token is not None and token.guess and VARIABLE not in os.environ:
        _check_guess(config, token)
    if is_worker(config) or hands_out(config) or token is not None or _is_given_up[0]:
        return
    # Imported here: the recorded process, and each replay of it, does not need it.
    from replaydbg.launch import interpreter

    own, words = interpreter.leading_options(sys.orig_argv[1:])
    reason = why_not(words)
    if reason:
        config.issue_config_time_warning(
            pytest.PytestConfigWarning(f"replaydbg records nothing: {reason}"), stacklevel=2
        )
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    try:
        os.execv(sys.executable, [sys.executable, *own, "-c", START, orders(config), *words])
    except OSError as error:
        config.issue_config_time_warning(
            pytest.PytestConfigWarning(f"replaydbg records nothing: {sys.executable}: {error.strerror}"), stacklevel=2
        )


def _check_guess(config: pytest.Config, token: shared_names.LaunchToken) -> None:
    """End this process, which has the launcher start it anew, if its launcher has guessed other orders."""
    guess = shared_names.GUESSES[bisects(config), makes_pages(config)]
    is_right = token.directory == directory_of(config) and token.guess == guess and children_of(config) == "none"
    if hands_out(config) or not is_right:
        _audit("replaydbg.mark", '{"do": "misguessed"}')
        os._exit(0)


def orders(config: pytest.Config) -> str:
    """Return the orders of the launcher."""
    return shared_names.LauncherOrders(
        directory_of(config), bisects(config), children=children_of(config), pages=makes_pages(config)
    ).as_text()


def why_not(words: list[str]) -> str:
    """Return why the command that started this process cannot simply be restarted; empty: it can."""
    if not words:
        return "pytest runs inside an interactive interpreter"
    name = words[1] if words[0] == "-m" and len(words) > 1 else words[0]
    base = os.path.basename(os.path.dirname(name) if name.endswith("__main__.py") else name)  # noqa: PTH119,PTH120
    if base.removesuffix(".py") in _PROGRAMS:
        return ""
    # It may have had side effects before this point, and would repeat them.
    return f"pytest was started by {base!r}; record that as a whole, with `replaydbg record`"


def hands_out(config: pytest.Config) -> bool:
    """Whether pytest-xdist is to run the tests in other processes."""
    options = config.known_args_namespace
    if getattr(options, "usepdb", False):
        return False
    return bool(getattr(options, "numprocesses", None) or getattr(options, "tx", None))
