"""The data of an icicle graph of the heap: the worker creates it, the dialog draws it."""

from __future__ import annotations

from replaydbg.classes import dataclass


@dataclass(frozen=True, slots=True)
class IcicleBox:
    """An object, or several that are alike, with everything that only they keep alive."""

    step: str
    """The step from the box around it."""
    path: str
    """The path of the object, of several that of the largest; empty: it is the whole heap."""
    type: str
    """Its type in short form, with the number of objects if there are several."""
    retained: int
    """Bytes."""
    size: str
    """The same as people read it."""
    boxes: tuple[IcicleBox, ...]
    """Those inside, the largest first."""


@dataclass(frozen=True, slots=True)
class IcicleAnswer:
    """What keeps memory alive at a moment."""

    title: str
    whole: IcicleBox
