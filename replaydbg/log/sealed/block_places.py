"""Where the blocks of a group are. A module of its own: the recorder needs it before the program begins."""

from __future__ import annotations

from pathlib import Path

from replaydbg.classes import NamedTuple


class BlockPlaces(NamedTuple):
    """The directories whose blocks recordings of a group use."""

    own: Path
    """The one in which their directory of blocks is: the group, or the directory of the tests that started it."""
    store: Path | None = None
    """The store whose blocks become files of the group, and in which its blocks get names; None: it is in none."""
