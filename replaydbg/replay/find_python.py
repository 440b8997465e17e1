"""Find the interpreter for a replay: one of this user's, and that of a recording only if this user made it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from replaydbg.config import load_settings
from replaydbg.errors import WrongPython
from replaydbg.launch import interpreter
from replaydbg.log.sealed.origin import is_own
from replaydbg.native import core_file, has_core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.events.run_facts import PythonBuild

_QUESTION = "import sys,_imp;print(sys.hexversion,_imp.extension_suffixes()[0])"
"""The build as well as the version: a free-threaded or a debug build has the same version."""

_PATIENCE = 10.0
"""Seconds that an interpreter has to answer."""


def find_python(path: str, python: PythonBuild) -> str:
    """Return an interpreter of the recorded version and build.

    This is the running one if it matches; else the one that the setting `python` names, or that of the activated
    virtual environment, or one by that name on PATH, or one that pyenv installed. If this user made the recording with
    another binary, such as the system's, it is that one. Raises WrongPython if there is none; `path` is that of the
    recording.
    """
    matches = python.hexversion == sys.hexversion and python.soabi == interpreter.soabi()
    if matches and python.executable == sys.executable:
        return sys.executable
    # Builds of one version may differ in what is compiled into them. A path of somebody else's is not even looked at.
    if is_own(Path(path)) and _is_other_binary(python.executable) and _is_build(python.executable, python):
        return python.executable
    if matches:
        return sys.executable
    for candidate in _candidates(python.hexversion):
        if _is_build(candidate, python):
            return candidate
    raise WrongPython(path, _recorded_python(python), _this_python(python), has_core=has_core(python.soabi))


def _is_other_binary(executable: str) -> bool:
    """Return whether the recorded interpreter is on this machine, and not ours by another name."""
    return os.path.exists(executable) and os.path.realpath(executable) != os.path.realpath(sys.executable)  # noqa: PTH110


def find_python_and_core(path: str, python: PythonBuild) -> tuple[str, str]:
    """Return an interpreter as `find_python` does, and the path of the core for it.

    Raises WrongPython if this installation has a core for its own Python only, and NotBuilt if not even that one.
    """
    executable = find_python(path, python)
    if python.soabi != interpreter.soabi() and not has_core(python.soabi):
        raise WrongPython(path, _recorded_python(python), _this_python(python), executable)
    return executable, core_file(python.soabi)


def _recorded_python(recorded: PythonBuild) -> str:
    """Return the recorded version, and its platform if that is another one than ours (`aarch64-linux-gnu`)."""
    there, here = (soabi.split("-", 2)[-1] for soabi in (recorded.soabi, interpreter.soabi()))
    return f"{recorded.version} for {there}" if "-linux-" in there and there != here else recorded.version


def _this_python(recorded: PythonBuild) -> str:
    """Return the version of this Python, and how it differs from another one of the same version."""
    found = sys.version.split()[0]
    return f"{found} (another build of it, {interpreter.soabi()})" if found == recorded.version else found


def _candidates(hexversion: int) -> Iterator[str]:
    major, minor, micro = (hexversion >> shift & 255 for shift in (24, 16, 8))
    named = load_settings().python
    if named:
        yield named
    activated = os.environ.get("VIRTUAL_ENV", "")
    if Path(activated).is_absolute():  # the working directory may be somebody else's
        yield f"{activated}/bin/python"
    for directory in os.get_exec_path():
        if Path(directory).is_absolute():
            yield f"{directory}/python{major}.{minor}"
    versions = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()) / "versions"
    if versions.is_absolute():
        yield str(versions / f"{major}.{minor}.{micro}" / "bin" / "python")


def _is_build(candidate: str, python: PythonBuild) -> bool:
    if not os.access(candidate, os.X_OK):
        return False
    import subprocess  # it takes 3 ms, which a replay in the same interpreter need not pay

    try:
        answer = subprocess.run(
            [candidate, "-I", "-S", "-c", _QUESTION],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == f"{python.hexversion} .{python.soabi}.so"
