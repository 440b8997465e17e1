"""Which interpreters the core is made for. setup.py runs this file before it compiles: it imports nothing but `sys`."""

from __future__ import annotations

import sys

OLDEST, NEWEST = (3, 11), (3, 14)
"""The versions of CPython that the core is tested with: it patches the interpreter's own structures, which change."""

LEFT_OUT = tuple((3, 14, micro) for micro in range(5))
"""Releases among them whose garbage collector is another one (incremental); 3.14.5 has that of 3.13 again."""

WANTED = "an ordinary build of CPython 3.11, 3.12, 3.13 or 3.14 (from 3.14.5 on) on Linux"
"""The versions to use instead, in words."""


def why_unsupported() -> str:
    """Return why the core cannot run in this interpreter, as the end of a sentence; empty if it can."""
    version = sys.version_info[:2]
    found = f"{version[0]}.{version[1]}"
    if sys.implementation.name != "cpython":
        return f"it is {sys.implementation.name}, and only CPython has what the core works on"
    if version < OLDEST:
        return f"{found} is older than {_text(OLDEST)}, the oldest version that the core knows"
    if version > NEWEST:
        return f"{found} is newer than {_text(NEWEST)}, the newest version that the core was tested with"
    if sys.version_info[:3] in LEFT_OUT:
        return f"{found}.{sys.version_info[2]} has an incremental garbage collector, which the core does not know"
    # The letters tell how it was built, even where the GIL is on at the moment.
    if "t" in sys.abiflags:
        return "it is a free-threaded build, and the core relies on the GIL"
    if "d" in sys.abiflags:
        return "it is a debug build, and the core was not tested with its checks"
    if sys.platform != "linux":
        return f"it runs on {sys.platform}, and recording needs Linux"
    if "musl" in getattr(sys.implementation, "_multiarch", ""):
        return "its C library is musl (as on Alpine Linux), and recording needs glibc"
    return ""


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
