"""The C core, which runs inside recorded and replayed programs. This side only finds the built file."""

from __future__ import annotations

import os
import sys

from replaydbg.errors import NotBuilt, UnsupportedPython
from replaydbg.native.supported import WANTED, why_unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_interpreter() -> None:
    """Raise UnsupportedPython if the core cannot run in the interpreter that runs this."""
    reason = why_unsupported()
    if reason:
        raise UnsupportedPython(sys.executable, reason, WANTED)


def check_core() -> None:
    """Raise UnsupportedPython or NotBuilt if this installation has no core, for whichever Python."""
    directory = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100,PTH120 - as below
    if not any(name.startswith("_core.") and name.endswith(".so") for name in os.listdir(directory)):  # noqa: PTH208
        check_interpreter()
        raise NotBuilt


def core_file(soabi: str) -> str:
    """Return the path of the core built for the Python whose `SOABI` is given, such as `cpython-311-x86_64-linux-gnu`.

    Raises NotBuilt if there is none.
    """
    return _built("_core", soabi)


def has_core(soabi: str) -> bool:
    """Return whether the core was built for the Python whose `SOABI` is given."""
    return os.path.exists(_path("_core", soabi))  # noqa: PTH110 - pathlib is not loaded when a recording starts


def join_library(soabi: str) -> str:
    """Return the path of the library by which started Python programs join a group, see `core_file`.

    Raises NotBuilt if there is none.
    """
    return _built("_join", soabi)


def compiled(part: str, name: str) -> Any:
    """Return what a compiled module of this package, such as `_leaves`, has under a name.

    Raises ImportError if it is not built, NotBuilt if it was built from older sources.
    """
    module = __import__(f"{__name__}.{part}", fromlist=[name])
    if not hasattr(module, name):
        raise NotBuilt(f"its part {part} was built from older sources")
    return getattr(module, name)


def _built(name: str, soabi: str) -> str:
    path = _path(name, soabi)
    if not os.path.exists(path):  # noqa: PTH110 - pathlib is not loaded when a recording starts
        raise NotBuilt(f"for {soabi}")
    return path


def _path(name: str, soabi: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.{soabi}.so")  # noqa: PTH100,PTH118,PTH120
