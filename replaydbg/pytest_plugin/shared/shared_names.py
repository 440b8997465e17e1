"""Names that several processes of a session must agree on: the variable, directories of results."""

from __future__ import annotations

import json
import os
import re
from _blake2 import blake2b  # hashlib would import OpenSSL before every recorded session

from replaydbg.classes import NamedTuple

VARIABLE = "REPLAYDBG_PYTEST"
"""The environment variable that marks a recorded process of pytest, and names its recorder."""
RECORDING, SUMMARY, META, PAGE = "rec.rdbg", "summary.md", "meta.json", "failure.html"
"""The files of one result."""
PROCESSES = "rec"
"""The name of the group of processes beside them, if the test started some that were recorded."""
KEPT = "replaydbg_kept"
"""The attribute of a test's last report with the directory and the outcome, if the recording is kept without a
failure.
"""
FUTURES = "replaydbg_futures"
"""The attribute of a test's last report with the directory, and how many futures the test is to have."""
LAUNCHER = "replaydbg_launcher"
"""The key under which a worker of pytest-xdist sends the process id of its launcher."""
INDEX = "index"
"""The list of all results of a session: `.json` and `.md`."""

OWN_MARKS = ("collected", "test", "failure")
"""The moments that the plugin itself names."""

_TAKEN = ("start", "end", "last", "exc", *OWN_MARKS)
_MOMENT = re.compile(r"0|#.*|out:.*|t\+?\d+(\.\d+)?(ms|s|m)?", re.DOTALL)
"""Texts with another meaning after `@`, which cannot be names; see `debugger/moments.py`."""

_LONGEST = 120
_PLAIN = re.compile(r"[A-Za-z0-9_./]*(::[A-Za-z0-9_]+)*(\[[A-Za-z0-9_.]*\])?")
"""Node ids that stay unique when other characters than letters and digits become `-`."""
_OTHER = re.compile(r"[^A-Za-z0-9_.]+")


class LaunchToken(NamedTuple):
    """The content of the environment variable."""

    parent: int
    """The process id of the launcher: a process that only inherited the variable has another parent."""
    seed: int
    """The seed of string hashes."""
    directory: str
    """The directory of the results, as an absolute path."""
    guess: str = ""
    """The orders of the launcher, if they were guessed from the command line: a value of `GUESSES`; else empty."""

    def as_text(self) -> str:
        """Return the variable's value."""
        return f"{self.parent}:{self.seed}{self.guess}:{self.directory}"


def read_launch_token(text: str) -> LaunchToken | None:
    """Return the token of this process; None if it is not recorded."""
    parts = text.split(":", 2)
    if len(parts) != 3:
        return None
    parent, seed, directory = parts
    guess = next((each for each in GUESSES.values() if seed.endswith(each)), "")
    seed = seed.removesuffix(guess)
    if not (parent.isdecimal() and seed.isdecimal()) or int(parent) != os.getppid():
        return None
    return LaunchToken(int(parent), int(seed), directory, guess)


GUESSES = {
    (False, False): "?",
    (True, False): "?bisect",
    (False, True): "?html",
    (True, True): "?bisect-html",
}
"""By whether each failing assertion is bisected, and a page made of each failure: the guess of orders in a token."""


class LauncherOrders(NamedTuple):
    """The launcher's tasks besides recording the program."""

    directory: str
    """The directory of the results, as an absolute path."""
    bisects: bool
    """Whether each failing assertion is bisected."""
    is_guess: bool = False
    """Whether they were guessed from the command line: the recorded pytest compares them with its options."""
    children: str = "none"
    """Which child processes are recorded, too: as for `record`."""
    pages: bool = False
    """Whether a page is made of each failure."""

    def as_text(self) -> str:
        """Return them as an argument of the launcher."""
        return json.dumps(self._asdict())


def read_launcher_orders(text: str) -> LauncherOrders:
    """Return the orders in an argument of the launcher. Raises ValueError."""
    # Not by `json_reader`: the user waits for the launcher's start.
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("they are not an object")
    directory, is_bisected, is_guess = data.get("directory"), data.get("bisects"), data.get("is_guess", False)
    if not isinstance(directory, str) or "\0" in directory or not isinstance(is_bisected, bool):
        raise ValueError("they have no directory, or do not state whether to bisect")
    if not isinstance(is_guess, bool):
        raise ValueError("they do not state whether they are a guess")
    children = data.get("children", "none")
    if children not in ("none", "fork", "python"):
        raise ValueError("they do not state which children to record")
    pages = data.get("pages", False)
    if not isinstance(pages, bool):
        raise ValueError("they do not state whether to make pages")
    return LauncherOrders(directory, is_bisected, is_guess, children, pages)


def unrecorded(process: int) -> str:
    """Return the variable's value for a process that its launcher became because nothing can be recorded."""
    return f"unrecorded:{process}"


def misguessed(process: int) -> str:
    """Return the variable's value for a process that its launcher became because its orders were a wrong guess."""
    return f"misguessed:{process}"


def why_no_name(name: object) -> str:
    """Return why a test cannot give a moment this name, as a sentence; empty: it can."""
    if not isinstance(name, str) or not name or name != name.strip():
        return f"{name!r} cannot name a moment: a name must be a string, not empty, without spaces around it."
    if name in _TAKEN or _MOMENT.fullmatch(name):
        return f"{name!r} cannot name a moment: @{name} already has a meaning in the debugger."
    return ""


def slug(nodeid: str, attempt: int = 0) -> str:
    """Return the directory of a test's result: readable, unique for each test, without any of `: " < > | * ?`.

    `attempt`: 0 for the first one.
    """
    text = _OTHER.sub("-", nodeid).strip("-") or "test"
    if len(text) > _LONGEST or not _PLAIN.fullmatch(nodeid):
        # Truncated, or with characters that became equal.
        text = f"{text[:_LONGEST]}-{blake2b(nodeid.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"
    return f"{text}-retry{attempt}" if attempt else text
