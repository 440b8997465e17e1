"""The sanitizer that the core is built with in `tox -e asan`, and what that means for a test."""

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

IS_SANITIZED = hasattr(ctypes.CDLL(None), "__asan_init")
"""Whether AddressSanitizer's runtime is in this process, which the core then needs in every other one."""

SLOWER = 8 if IS_SANITIZED else 1
"""The factor for limits of CPU time: every object is allocated by the sanitizer, at two to six times the cost."""

_RUNTIME = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")


def runtime() -> dict[str, str]:
    """Return the variables that every process needs that may load the core; none if it is an ordinary one."""
    return {name: os.environ[name] for name in _RUNTIME if name in os.environ}


def without_runtime(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` for a process that must not have the runtime, and loads no core."""
    return {name: value for name, value in environment.items() if name != "LD_PRELOAD"}


def preloading(library: Path) -> dict[str, str]:
    """Return the variable that loads `library` into a process, after the runtime, which has to be the first one."""
    return {"LD_PRELOAD": " ".join(filter(None, (os.environ.get("LD_PRELOAD"), str(library))))}


@contextmanager
def usual_addresses() -> Iterator[None]:
    """Let programs have their objects where CPython's own allocator puts them, also under the sanitizer.

    Its allocator does not give a freed block again soon, so what the debugger's processes allocate by themselves moves
    the program's objects; a search by an object's address then has less to go by. Overruns of objects go unnoticed.
    """
    with pytest.MonkeyPatch.context() as patch:
        if IS_SANITIZED:
            patch.setenv("PYTHONMALLOC", "pymalloc")
        yield


needs_bounded_addresses = pytest.mark.skipif(
    IS_SANITIZED, reason="AddressSanitizer maps terabytes for its shadow: address space cannot be limited"
)

needs_usual_memory = pytest.mark.skipif(
    IS_SANITIZED, reason="AddressSanitizer gives out memory in another order where a part of a run is repeated"
)
"""For searches by an object's address in several threads, which `usual_addresses` is not always enough for."""
