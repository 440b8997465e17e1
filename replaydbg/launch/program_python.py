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

_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*[td]?")
"""What a command is called that is an interpreter."""

_PYTHON = ("python", "pypy")
"""What the name of an interpreter contains in the first line of a script."""

_QUESTION = """
import os, sys, _imp, json, site
place = os.path.dirname(os.path.abspath(sys.executable))
above = os.path.dirname(place)
is_virtual = any(os.path.exists(each + "/pyvenv.cfg") for each in (place, above))
prefix = above if is_virtual else sys.prefix
facts = {
    "version": sys.version.split()[0],
    "hexversion": sys.hexversion,
    "executable": sys.executable,
    "prefix": prefix,
    "cache_tag": sys.implementation.cache_tag,
    "soabi": _imp.extension_suffixes()[0][1:-3],
}
print(json.dumps([facts, site.getsitepackages([prefix])]))
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


def this_one() -> ProgramPython:
    """Return the interpreter that runs this."""
    return ProgramPython(interpreter.this_python(), sys.executable, sys.orig_argv[0], sys.path)


def split_command(words: list[str]) -> Started:
    """Return what the command line `words` begins with: an interpreter and its options, both of which may be left out.

    An interpreter that is left out is that of a console script, or of the activated virtual environment if this
    process was started by the command `replaydbg`, or the one that runs this, with the options that it has. Raises
    UsageError for one that cannot be recorded with, or does not answer.
    """
    named = _named(words)
    own, rest = interpreter.leading_options(words[1:] if named else words)
    found = named or _of_script(rest) or _of_activated()
    if found is None or _is_this(found):
        given = [] if named else interpreter.leading_options(sys.orig_argv[1:])[0]
        python = this_one()
    else:
        given = []
        python = _asked(found)
    # A program finds the word by which its interpreter was called in `sys.orig_argv`.
    return Started(python._replace(first_word=words[0]) if named else python, [*given, *own], rest)


def _named(words: list[str]) -> str | None:
    """Return the interpreter at the beginning of a command line: `python`, `.venv/bin/python`."""
    first = words[0] if words else ""
    if not _INTERPRETER.fullmatch(os.path.basename(first)) or os.path.isdir(first):  # noqa: PTH119,PTH112
        return None
    if os.path.isfile(first) and os.access(first, os.X_OK):  # noqa: PTH113
        return os.path.abspath(first)  # noqa: PTH100
    return _command(first)


def _of_script(words: list[str]) -> str | None:
    """Return the interpreter of a console script: of a command, or of a file that lies beside its interpreter."""
    first = words[0] if words else "-"
    if first.startswith("-"):
        return None
    command = _command(first)
    if command is not None:
        return _interpreter_of(command)
    place = os.path.dirname(os.path.abspath(first))  # noqa: PTH100,PTH120
    if not os.path.isfile(first) or not os.path.exists(f"{place}/python"):  # noqa: PTH110,PTH113
        return None
    try:
        found = _interpreter_of(first)
    except (OSError, UsageError):
        return None
    return found if os.path.dirname(found) == place else None  # noqa: PTH120


def _command(word: str) -> str | None:
    """Return the path of the command `word`; None: it is a file, or there is none."""
    if os.sep in word or os.path.exists(word):  # noqa: PTH110
        return None
    # Imported here and below: it takes 2 ms, which most programs need not pay.
    import shutil

    return shutil.which(word)


def _interpreter_of(path: str) -> str:
    """Return the interpreter that a script names in its first line; raises UsageError if it is no Python."""
    with open(path, "rb") as file:  # noqa: PTH123
        line = file.readline(1024)
        second = file.readline(1024)
    if not line.startswith(b"#!"):
        raise UsageError(f"{path!r} is not a Python script: only Python programs can be recorded.")
    words = (line[2:].decode("utf-8", "surrogateescape").strip() or "?").split()
    if words[0].endswith("/sh") and b"exec" in second:
        words = second.decode("utf-8", "surrogateescape").replace("'''exec'", "").split()[:1]
    interpreter = words[-1] if words[0].endswith("/env") else words[0]
    if not _is_python(interpreter):
        raise UsageError(f"{path!r} is not a Python script (it is run by {interpreter!r}).")
    import shutil

    return shutil.which(interpreter) or interpreter


def _is_python(word: str) -> bool:
    """Return whether a command has the name of an interpreter, such as `/usr/bin/python3`."""
    return any(name in os.path.basename(word) for name in _PYTHON)  # noqa: PTH119


def _of_activated() -> str | None:
    """Return the interpreter of the activated virtual environment; `python -m replaydbg` names its own."""
    environment = os.environ.get("VIRTUAL_ENV")
    if not environment or interpreter.leading_options(sys.orig_argv[1:])[1][:1] == ["-m"]:
        return None
    found = os.path.join(environment, "bin", "python")  # noqa: PTH118
    return found if os.path.exists(found) else None  # noqa: PTH110


def _is_this(other: str) -> bool:
    """Whether it is the same binary in the same environment: two environments may link to one binary."""
    here, there = (os.path.dirname(os.path.abspath(path)) for path in (sys.executable, other))  # noqa: PTH100,PTH120
    same_file = os.path.realpath(sys.executable) == os.path.realpath(other)
    return same_file and os.path.realpath(here) == os.path.realpath(there)


def _asked(path: str) -> ProgramPython:
    # Imported here: only the program of another environment needs them.
    import json
    import subprocess

    command = [path, "-I", "-S", "-c", _QUESTION]
    try:
        answer = subprocess.run(
            command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE
        ).stdout
        facts, packages = json.loads(answer)
        version, soabi = str(facts["version"]), str(facts["soabi"])
        executable = str(facts["executable"])
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path!r} does not say which Python it is ({_reason(error)}).") from error
    if soabi != interpreter.soabi():
        raise UsageError(_wrong_build(path, version, soabi))
    return ProgramPython(facts, executable, executable, packages)


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", None)
    lines = said.decode(errors="replace").strip().splitlines() if isinstance(said, bytes) else []
    if not lines:
        return str(error)
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def _wrong_build(path: str, version: str, soabi: str) -> str:
    here = sys.version.split()[0]
    is_same_version = version.split(".")[:2] == here.split(".")[:2]
    there, ours = (f"{version} ({soabi})", f"{here} ({interpreter.soabi()})") if is_same_version else (version, here)
    minor = ".".join(version.split(".")[:2])
    return (
        f"Cannot record with {path!r}: it is Python {there}, and replaydbg is installed in a Python {ours}. Install "
        f"replaydbg in a Python {minor}, or in the program's environment."
    )
