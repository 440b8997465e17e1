"""Build the start of a replay's interpreter: validated options and variables, none copied from the recording unchecked.

A recording may be of unknown origin, and these choices take effect before the fence. So there are two lists: the
options and the variables that shape the interpreter's own state, each with the values that it may have. The core
restores the rest of the recorded options and the recorded environment behind the fence (surroundings.c).
"""

from __future__ import annotations

import os
import re
import sys

from replaydbg.classes import dataclass
from replaydbg.errors import CannotStart
from replaydbg.launch import interpreter
from replaydbg.launch.interpreter import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    from replaydbg.events.run_facts import Header

    class StartBoot(TypedDict):
        """Start parameters that the core restores."""

        xoptions: list[tuple[str, str | bool]]
        """The -X options: names with values; True: without a value."""
        pycache_prefix: str | None


_LETTERS = frozenset("bBdEiIOPqRsStuvx")
"""Options without a value, also -t, which has no effect. -h, -V, -? print something and exit; -c and -m run something.
"""

_MOST_TIMES = 4
"""Maximum number of times that an option of one letter is passed on.

Beyond three -v, two -O and two -b nothing changes.
"""

_HASH_BASED = ("always", "default", "never")

_X_VALUES: dict[str, str] = {
    "dev": "",
    "faulthandler": "",
    "frozen_modules": "on|off",
    "gil": "[01]",
    "cpu_count": "default|[0-9]{1,9}",
    "importtime": "",
    "int_max_str_digits": "[0-9]{1,9}",
    "no_debug_ranges": "",
    "tracemalloc": "[0-9]{1,5}",
    "utf8": "[01]",
    "warn_default_encoding": "",
}
"""The -X options that are passed on, with patterns for their values. Empty: the value has no effect and is left out.

Others only appear in `sys._xoptions`, where the core puts them. Of those that CPython knows, `pycache_prefix` names a
directory to import from, `presite` a module to import, and `perf` a file to write.
"""

_FLAG = "[0-9A-Za-z]{1,16}"
_VARIABLES: dict[str, str] = {
    "PYTHONCOERCECLOCALE": "0|1|warn",
    "PYTHONDEBUG": _FLAG,
    "PYTHONDEVMODE": _FLAG,
    "PYTHONDONTWRITEBYTECODE": _FLAG,
    "PYTHONFAULTHANDLER": _FLAG,
    "PYTHONINSPECT": _FLAG,
    "PYTHONINTMAXSTRDIGITS": "[0-9]{1,9}",
    "PYTHONIOENCODING": "[A-Za-z0-9_.-]{0,40}(:[A-Za-z0-9_.-]{0,40})?",
    "PYTHONMALLOC": "default|debug|malloc|malloc_debug|pymalloc|pymalloc_debug|mimalloc|mimalloc_debug",
    "PYTHONMALLOCSTATS": _FLAG,
    "PYTHONNODEBUGRANGES": _FLAG,
    "PYTHONNOUSERSITE": _FLAG,
    "PYTHONOPTIMIZE": _FLAG,
    "PYTHONPROFILEIMPORTTIME": _FLAG,
    "PYTHONTRACEMALLOC": "[0-9]{1,5}",
    "PYTHONUNBUFFERED": _FLAG,
    "PYTHONUTF8": "[01]",
    "PYTHONVERBOSE": _FLAG,
    "PYTHONWARNDEFAULTENCODING": _FLAG,
    "PYTHON_CPU_COUNT": "default|[0-9]{1,9}",
    "PYTHON_FROZEN_MODULES": "on|off",
    "PYTHON_GIL": "[01]",
}
"""The variables with which the interpreter is started, and their values.

Any other value of one with `_FLAG` means 1.
"""

_LOCALE = re.compile("[A-Za-z0-9][A-Za-z0-9_@+-]*([.][A-Za-z0-9_@+-]+)?")
"""The name of a locale, which the C library searches for in the system's own directory: not a path."""

_LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")
_NO_LOCALE = "no-such-locale"
"""Replaces an invalid name: the C library does not find it either."""

_OWN = ("LD_LIBRARY_PATH", "LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
"""Variables that the interpreter gets from this command's own environment: it may not start without them."""

_OWN_PYTHON = ("PYTHONHOME", "PYTHONPLATLIBDIR")
"""The same, if the interpreter is the one that runs this."""


@dataclass(frozen=True, slots=True)
class StartState:
    """The start parameters of a replay's interpreter, and those that the core adds behind the fence."""

    words: list[str]
    """Its options."""
    env: dict[str, str]
    """Its whole environment."""
    boot: StartBoot
    """The fields that the core restores."""


def start_state(header: Header, path: str, executable: str, recorded_start: Mapping[str, str]) -> StartState:
    """Return the start state; `recorded_start` is the environment with which the recorded interpreter was started.

    Raises CannotStart for an option or a value that no recorder writes.
    """
    given = interpreter.parse_options(list(header.python.flags))
    options = interpreter.split_options(list(header.python.flags))
    held = interpreter.held_warnings(header.env, options)
    env = _own_variables(executable)
    env |= _python_variables(path, recorded_start)
    env |= {name: _locale(recorded_start[name]) for name in _LOCALE_VARIABLES if recorded_start.get(name)}
    env["PYTHONHASHSEED"] = str(header.hash_seed)
    prefix = "" if options.ignore_environment else header.env.get("PYTHONPYCACHEPREFIX", "")
    prefix = next((value or "" for name, value in _x_options(given) if name == "pycache_prefix"), prefix)
    boot: StartBoot = {
        "xoptions": [(name, True if value is None else value) for name, value in _x_options(given)],
        "pycache_prefix": prefix or None,
    }
    return StartState(_words(path, given, holds_warnings=bool(held)), env, boot)


def _own_variables(executable: str) -> dict[str, str]:
    names = [*_OWN]
    if executable == sys.executable and not sys.flags.ignore_environment:
        names += _OWN_PYTHON
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _python_variables(path: str, recorded: Mapping[str, str]) -> dict[str, str]:
    env = {}
    for name, form in _VARIABLES.items():
        value = recorded.get(name, "")
        if value and not re.fullmatch(form, value):
            if form is not _FLAG and name != "PYTHONCOERCECLOCALE":
                raise CannotStart(path, f"its variable {name} has the invalid value {value!r}")
            value = "1"
        if value:
            env[name] = value
    if recorded.get("PYTHONWARNINGS"):
        env["PYTHONWARNINGS"] = recorded["PYTHONWARNINGS"]  # it names no module, see held_warnings
    return env


def _locale(name: str) -> str:
    return name if _LOCALE.fullmatch(name) and len(name) < 64 else _NO_LOCALE


def _words(path: str, given: list[Option], *, holds_warnings: bool) -> list[str]:
    """Return the words for those of `given` that are passed on, each checked. Raises CannotStart."""
    passed: list[Option] = []
    for option in given:
        name, value = option
        if name == "W":
            if value is None:
                raise CannotStart(path, "its interpreter option -W has no value")
            if not holds_warnings:
                passed.append(option)
        elif name == "X":
            passed += _passed_x(path, value)
        elif name == "--check-hash-based-pycs":
            if value not in _HASH_BASED:
                raise CannotStart(path, f"its interpreter option {name} has the invalid value {value!r}")
            passed.append(option)
        elif name not in _LETTERS:
            raise CannotStart(path, f"its interpreter option {_shown(option)} is not allowed in a recording")
        elif passed.count(option) < _MOST_TIMES:
            passed.append(option)
    return interpreter.passed_words(passed)


def _shown(option: Option) -> str:
    if not option.name:
        return repr(option.value)
    return repr(option.name if option.name.startswith("--") else f"-{option.name}")


def _x_options(given: list[Option]) -> list[tuple[str, str | None]]:
    """Return the -X options as `sys._xoptions` has them: names with values, the last of each name."""
    found: dict[str, str | None] = {}
    for option in given:
        if option.name == "X" and option.value is not None:
            name, equals, value = option.value.partition("=")
            found[name] = value if equals else None
    return list(found.items())


def _passed_x(path: str, word: str | None) -> list[Option]:
    if word is None:
        raise CannotStart(path, "its interpreter option -X has no value")
    name, equals, value = word.partition("=")
    form = _X_VALUES.get(name)
    if form is None:
        return []
    if not form:
        return [Option("X", name)]
    if equals and not re.fullmatch(form, value):
        raise CannotStart(path, f"its interpreter option -X {name} has the invalid value {value!r}")
    return [Option("X", word)]
