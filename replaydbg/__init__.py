"""replaydbg: record a run of a Python program once, then replay it exactly, as often as you like."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

__version__ = "0.1.0"


def snapshot(name: str = "") -> None:
    """Store a snapshot of the program's objects in its recording, called `name`; do nothing outside a recording.

    A copy of the process takes it while the program goes on.
    """
    # The audit event reaches the recorder; nothing else of replaydbg is in its process.
    sys.audit("replaydbg.snapshot", name)


def cut(name: str = "") -> None:
    """Take a live cut named `name` of the processes that are recorded together; do nothing outside of a group.

    It is a consistent global state: for each process how far it had gone, and for each channel what was in flight. No
    process is stopped, and nothing is sent. `replaydbg cut GROUP --live` lists them. The name is cut off after 200
    bytes of UTF-8.
    """
    sys.audit("replaydbg.cut", name)


invariants: "list[tuple[str, Any]]" = []
"""The arguments of `check`: a name, and an expression or a function."""


def check(what: "Any", name: str = "") -> "Any":
    """Check that `what` holds at each snapshot of a recorded run; return it. Does nothing where no snapshots are taken.

    An expression (str) is evaluated in the main module, and holds if it is true. A function, called without arguments,
    fails by returning False or by raising AssertionError; so it can be decorated with this. Both run in a copy of the
    process when it has taken a snapshot: what they change stays there, and input or output in them raises.
    """
    invariants.append((name or (what if isinstance(what, str) else getattr(what, "__qualname__", repr(what))), what))
    return what


def load(path: "str | os.PathLike[str]") -> "Any":
    """Return the object that `replaydbg export` took out of a recording. As with any pickle, code in the file runs.

    A part that could not be exported is replaced by a `replaydbg.debugger.exported.Missing`. Raises UsageError if
    `path` is not such a file.
    """
    # Imported here: a recorded program that imports replaydbg for its snapshots pays for nothing else.
    from replaydbg.debugger.exported import load

    return load(path)
