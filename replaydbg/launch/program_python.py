"""Find the interpreter of a program: the one that runs this, or that of another environment.

replaydbg may be installed in an environment of its own (pipx, uv). The program then has another one, with the same
version of Python; nothing but the core is loaded into its interpreter.
"""

from __future__ import annotations

import os
import re
import sys

from replaydbg.classes import NamedTuple
from replaydbg.errors import UsageError
from replaydbg.launch import interpreter
from replaydbg.native.supported import OLDEST

_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*[td]?")
"""The names of interpreters."""

_PYTHON = ("python", "pypy")
"""One of them is in the name of an interpreter in the first line of a script."""

_QUESTION = """
import os, sys, _imp, json, site
place = os.path.dirname(os.path.abspath(sys.executable))
above = os.path.dirname(place)
is_virtual = any(os.path.exists(each + "/pyvenv.cfg") for each in (place, above))
prefix = above if is_virtual else sys.prefix
facts = {
    "version": sys.version.split()[0],
    "hexversion": sys.hexversion,
    "cache_tag": sys.implementation.cache_tag,
    "soabi": _imp.extension_suffixes()[0][1:-3],
}
paths = [sys.executable, prefix, *site.getsitepackages([prefix])]
print(json.dumps([facts, [os.fsencode(each).hex() for each in paths]]))
"""
"""Asked without `site`, which runs code of the environment; so the prefix of a virtual environment is looked for."""

_PATIENCE = 10.0
"""Seconds that an interpreter has to answer."""


class ProgramPython(NamedTuple):
    """A program's interpreter."""

    facts: dict[str, object]
    """Its description for the header of a recording."""
    executable: str
    """Its path."""
    first_word: str
    """The first word of its command line."""
    search_path: list[str]
    """Directories that have its packages."""


class Started(NamedTuple):
    """A program's command line, split."""

    python: ProgramPython
    options: list[str]
    """Those of the interpreter."""
    words: list[str]
    """The program's, see `find_target`."""
    takes_commands: bool = True
    """Whether the program may be a command of `PATH`: an interpreter in the command line takes files."""


class _Found(NamedTuple):
    """An interpreter that was found."""

    path: str
    options: list[str]
    """Options that belong to it: those in the first line of a script."""


def this_one() -> ProgramPython:
    """Return the interpreter that runs this."""
    return ProgramPython(interpreter.this_python(), sys.executable, sys.orig_argv[0], sys.path)


def split_command(words: list[str], *, follows_activated: bool = False) -> Started:
    """Return what the command line `words` begins with: an interpreter and its options, both of which may be left out.

    An interpreter that is left out is that of a console script or, with `follows_activated`, of the activated virtual
    environment if this process was started as the command `replaydbg` of `PATH`, or the one that runs this, with the
    options that it has. Raises UsageError for one that cannot be recorded with, or does not answer.
    """
    named = named_python(words)
    own, rest = interpreter.leading_options(words[1:] if named else words)
    found = _Found(named, []) if named else _of_script(rest)
    if found is None and follows_activated and (activated := activated_python()):
        found = _Found(activated, [])
    options = [*(found.options if found is not None else []), *own]
    if found is None:
        return Started(this_one(), [*interpreter.leading_options(sys.orig_argv[1:])[0], *own], rest)
    if is_this(found.path):
        # By another of its names it finds that in `sys.executable`.
        facts = {**interpreter.this_python(), "executable": found.path}
        python = this_one()._replace(facts=facts, executable=found.path)
    else:
        python = _asked(found.path)
    # A program finds the word by which its interpreter was called in `sys.orig_argv`.
    python = python._replace(first_word=words[0] if named else found.path)
    return Started(python, options, rest, takes_commands=not named)


def named_python(words: list[str]) -> str | None:
    """Return the path of the interpreter at the beginning of a command line: `python`, `.venv/bin/python`.

    As in a shell, a word without a slash is looked for on `PATH` only.
    """
    first = words[0] if words else ""
    if len(words) < 2 or not _INTERPRETER.fullmatch(os.path.basename(first)):  # noqa: PTH119
        return None
    if os.sep not in first:
        return _on_path(first)
    is_program = os.path.isfile(first) and os.access(first, os.X_OK)  # noqa: PTH113
    return os.path.abspath(first) if is_program else None  # noqa: PTH100


def is_this(other: str) -> bool:
    """Return whether an interpreter is the one that runs this: two environments may link to one binary."""
    here, there = (os.path.dirname(os.path.abspath(path)) for path in (sys.executable, other))  # noqa: PTH100,PTH120
    same_file = os.path.realpath(sys.executable) == os.path.realpath(other)
    return same_file and os.path.realpath(here) == os.path.realpath(there)


def _on_path(word: str) -> str | None:
    # Imported here: it takes 2 ms, which most programs need not pay.
    import shutil

    found = shutil.which(word)
    return os.path.abspath(found) if found else None  # noqa: PTH100


def _of_script(words: list[str]) -> _Found | None:
    """Return the interpreter of a console script: of a command, or of a file that names a virtual environment's."""
    first = words[0] if words else "-"
    if first.startswith("-"):
        return None
    if not os.path.exists(first):  # noqa: PTH110
        command = _on_path(first) if os.sep not in first else None
        return _of_first_line(command) if command else None
    if not os.path.isfile(first) or not os.access(first, os.X_OK):  # noqa: PTH113
        return None
    try:
        found = _of_first_line(os.path.realpath(first))
    except (OSError, UsageError):
        return None
    # Another one is the choice of who wrote the script, and not of who has made an environment for it.
    above = os.path.dirname(os.path.dirname(found.path))  # noqa: PTH120
    return found if os.path.exists(f"{above}/pyvenv.cfg") and os.path.exists(found.path) else None  # noqa: PTH110


def _of_first_line(path: str) -> _Found:
    """Return the interpreter that a script names in its first line; raises UsageError if it is no Python."""
    # Imported here: only a script that is called as a command is read.
    import shlex

    with open(path, "rb") as file:  # noqa: PTH123
        lines = [file.readline(1024).decode("utf-8", "surrogateescape").strip() for _ in range(2)]
    if not lines[0].startswith("#!"):
        raise UsageError(f"{path!r} is not a Python script: only Python programs can be recorded.")
    words = lines[0][2:].split() or ["?"]
    if words[0].endswith("/sh") and lines[1].startswith("'''exec'"):
        # What pip and uv write where the path of the interpreter is long or contains a space.
        text = lines[1].removeprefix("'''exec'").strip()
        if text.startswith('"$(dirname'):  # in an environment that can be moved: beside the script
            beside = text.rpartition("/")[2].split()[0].strip("'\"")
            words = [os.path.join(os.path.dirname(os.path.realpath(path)), beside)]  # noqa: PTH118,PTH120
        else:
            words = shlex.split(text)[:1]
    if words[0].endswith("/env"):
        words = [word for word in words[1:] if word != "-S"] or ["?"]
    if not any(name in os.path.basename(words[0]) for name in _PYTHON):  # noqa: PTH119
        raise UsageError(f"{path!r} is not a Python script (it is run by {words[0]!r}).")
    return _Found(_on_path(words[0]) or words[0], words[1:])


def activated_python() -> str | None:
    """Return the interpreter of the activated virtual environment.

    None: there is none, or `python -m replaydbg` or a path such as `.venv/bin/replaydbg` has named another one.
    """
    environment = os.environ.get("VIRTUAL_ENV", "")
    found = os.path.join(environment, "bin", "python")  # noqa: PTH118
    if not os.path.isabs(environment) or not os.path.exists(found):  # noqa: PTH110,PTH117
        return None
    command = _on_path("replaydbg")
    is_command = command is not None and os.path.realpath(command) == os.path.realpath(sys.argv[0])
    return found if is_command else None


def _asked(path: str) -> ProgramPython:
    # Imported here: only the program of another environment needs them.
    import json
    import subprocess

    command = [path, "-I", "-S", "-c", _QUESTION]
    try:
        answer = subprocess.run(
            command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE
        ).stdout
        facts, paths = json.loads(answer)
        executable, prefix, *packages = (os.fsdecode(bytes.fromhex(each)) for each in paths)
        facts |= {"executable": executable, "prefix": prefix}
        version, soabi = str(facts["version"]), str(facts["soabi"])
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"{path!r} did not say within {_PATIENCE:.0f} s which Python it is.") from error
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path!r} did not say which Python it is ({_reason(error)}).") from error
    if soabi != interpreter.soabi():
        raise UsageError(_wrong_build(path, version, soabi))
    return ProgramPython(facts, executable, executable, packages)


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", None)
    lines = said.decode(errors="replace").strip().splitlines() if isinstance(said, bytes) else []
    if lines:
        return lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return "its answer was something else" if isinstance(error, (ValueError, TypeError, KeyError)) else str(error)


def _wrong_build(path: str, version: str, soabi: str) -> str:
    here = sys.version.split()[0]
    is_same_version = version.split(".")[:2] == here.split(".")[:2]
    there, ours = (f"{version} ({soabi})", f"{here} ({interpreter.soabi()})") if is_same_version else (version, here)
    minor = ".".join(version.split(".")[:2])
    is_old = tuple(int(part) for part in version.split(".")[:2]) < OLDEST
    how = "That is too old." if is_old else f"Install replaydbg in a Python {minor}, or in the program's environment."
    return f"Cannot record with {path!r}: it is Python {there}, and replaydbg is installed in a Python {ours}. {how}"
