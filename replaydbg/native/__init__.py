"""The C core, which runs inside recorded and replayed programs. This side only finds the built file."""

from __future__ import annotations

import os

from replaydbg.errors import NotBuilt


def core_file(soabi: str) -> str:
    """Return the path of the core built for the Python whose `SOABI` is given, such as `cpython-311-x86_64-linux-gnu`.

    Raises NotBuilt if there is none.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"_core.{soabi}.so")  # noqa: PTH100,PTH118,PTH120
    if not os.path.exists(path):  # noqa: PTH110 - pathlib is not loaded when a recording starts
        raise NotBuilt(f"for {soabi}")
    return path
