"""Start pytest as a recorded process before pytest itself is imported, if the command line requests it plainly.

`replaydbg.pth`, a file beside the installed package, calls this when an interpreter starts with an option of the plugin
on its command line. It imports next to nothing. What it cannot see, such as the options in a configuration file, it
guesses: the recorded pytest compares the orders with its options, and has itself started again if they differ.
"""

from __future__ import annotations

import os
import sys
from _json import encode_basestring_ascii  # json would import re

from replaydbg.launch.command_line import leading_options

START = (
    "import sys;del sys.path[0];"
    "from replaydbg.pytest_plugin.parent.launcher import main;"
    "main(sys.argv[1], sys.orig_argv[sys.orig_argv.index('-c') + 3:])"
)
"""The command line of the launcher. The tool must not be imported from the working directory."""

DEFAULT_DIRECTORY = "test-results"
"""The default directory of the recordings."""

_MODES = ("on", "retain-on-failure", "retry")
_PYTESTS = ("pytest", "py.test")
_DISTRIBUTING = ("--numprocesses", "--tx", "--dist", "--looponfail")
"""Options of pytest-xdist; a word such as `-n4` or `-qn4` is recognised by its letter."""
_CONFIGURATIONS = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg")
_HINTS = (
    b"replaydbg_dir",
    b"replaydbg_bisect",
    b"replaydbg_children",
    b"replaydbg_html",
    b"--replaydbg",
    b" -n",
    b"'-n",
    b'"-n',
    b"--numprocesses",
)


def start() -> None:
    """Replace this process by the launcher of the same command, or return as if nothing had been imported."""
    own, words = leading_options(sys.orig_argv[1:])
    try:
        orders = orders_for(words)
        if orders is not None and not _is_configured():
            os.execv(sys.executable, [sys.executable, *own, "-c", START, orders, *words])
    except OSError:  # it cannot be executed, or the working directory is gone: the plugin says why
        pass
    # pytest warns of a plugin that was imported before it.
    for name in [each for each in sys.modules if each.partition(".")[0] == "replaydbg"]:
        del sys.modules[name]


def orders_for(words: list[str]) -> str | None:
    """Return the orders of the launcher, guessed from the command line; None: it does not plainly request a recording.

    Whatever this does not recognise is left to the plugin.
    """
    if words[:1] == ["-m"]:
        is_pytest, given = words[1:2] == ["pytest"], words[2:]
    else:
        folder, name = os.path.split(os.path.abspath(words[0] if words else ""))  # noqa: PTH100 - see below
        # Another script may have the name.
        is_pytest, given = name in _PYTESTS and folder == os.path.dirname(sys.executable), words[1:]  # noqa: PTH120
    modes = [each for each in given if each.startswith("--replaydbg=")]
    if not is_pytest or len(modes) != 1 or modes[0].removeprefix("--replaydbg=") not in _MODES:
        return None
    if any(each == "--replaydbg" or each == "--" or "no:replaydbg" in each or _distributes(each) for each in given):
        return None
    if any(each.startswith("--replaydbg-children") for each in given):
        return None
    directory, bisects, pages = DEFAULT_DIRECTORY, "false", "false"
    for word, following in zip(given, [*given[1:], ""], strict=True):
        if word == "--replaydbg-dir":
            directory = following
        elif word.startswith("--replaydbg-dir="):
            directory = word.removeprefix("--replaydbg-dir=")
        elif word == "--replaydbg-bisect":
            bisects = "true"
        elif word == "--replaydbg-html":
            pages = "true"
    if not directory:
        return None
    path = encode_basestring_ascii(os.path.abspath(directory))  # noqa: PTH100 - pathlib resolves links
    return f'{{"directory": {path}, "bisects": {bisects}, "is_guess": true, "pages": {pages}}}'


def _distributes(word: str) -> bool:
    return word.startswith(_DISTRIBUTING) if word.startswith("--") else word.startswith("-") and "n" in word


def _is_configured() -> bool:
    """Whether options may come from elsewhere. Only a hint: a wrong one costs a start of pytest."""
    texts = [os.environ.get("PYTEST_ADDOPTS", "").encode("utf-8", "replace")]
    for name in _CONFIGURATIONS:
        try:
            with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0) as file:  # noqa: PTH123 - pathlib is not imported yet
                texts.append(file.read(1 << 20) or b"")
        except OSError:
            continue
    return any(hint in each for each in texts for hint in _HINTS)
