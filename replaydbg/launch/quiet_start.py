"""Variables with which every Python prints something by itself: `record` runs without them, its program with them.

They would make the launcher print too, among the program's output. The interpreter reads them before any code of ours
runs, so the launcher replaces itself once by another one without them. What it printed by then cannot be taken back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

_PREFIX = "REPLAYDBG_GIVEN_"
"""Prefix of variables that are kept for the program under another name."""

_PRINTING = ("PYTHONINSPECT", "PYTHONMALLOCSTATS", "PYTHONPROFILEIMPORTTIME", "PYTHONVERBOSE")
_COERCION = "PYTHONCOERCECLOCALE"


def _prints(name: str, value: str) -> bool:
    return (name in _PRINTING and bool(value)) or (name, value) == (_COERCION, "warn")


def start_quietly(given: Callable[[], Mapping[str, str]]) -> None:
    """Replace this process by one without variables that make it print; return if there are none.

    `given` returns the environment that this process was given, see `own_environment`.
    """
    if sys.flags.ignore_environment or not any(_prints(*each) for each in os.environ.items()):
        return
    # In their places: the program finds its environment in the order in which it was given.
    kept = {(_PREFIX if _prints(*each) else "") + each[0]: each[1] for each in given().items()}
    with suppress(OSError):  # then it prints
        os.execve(sys.executable, sys.orig_argv, kept)


def as_given(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with the variables of which `start_quietly` has changed the names."""
    ours = {_PREFIX + name: name for name in (*_PRINTING, _COERCION)}
    return {ours.get(name, name): value for name, value in environment.items()}


def without_second_warning(environment: dict[str, str]) -> dict[str, str]:
    """Return `environment` for the program, whose interpreter would repeat our own warning about the locale."""
    return {name: value for name, value in environment.items() if (name, value) != (_COERCION, "warn")}


def printed_by_itself(environment: Mapping[str, str]) -> list[str]:
    """Return notes on what the interpreter of a program with `environment` prints by itself and a replay does not."""
    notes = []
    if environment.get("PYTHONMALLOCSTATS"):
        notes.append("PYTHONMALLOCSTATS: a replay prints different memory allocator statistics, and fewer of them")
    if environment.get(_COERCION) == "warn" and _has_c_locale(environment):
        notes.append("PYTHONCOERCECLOCALE=warn: a replay does not print the warning about the locale")
    return notes


def _has_c_locale(environment: Mapping[str, str]) -> bool:
    # Imported here: few programs have that variable.
    import locale

    is_coerced = os.environ.get("LC_CTYPE") != environment.get("LC_CTYPE")
    return is_coerced or locale.setlocale(locale.LC_CTYPE) == "C"
