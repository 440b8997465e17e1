"""Reasons why logging stops early. Apart from the other records: a recording is sealed without loading those."""

from __future__ import annotations

from enum import Enum


class StopReason(Enum):
    """Why logging stopped before the program ended; the values are those of the format."""

    NOT_STOPPED = 0
    DISK_FULL = 1
    SIZE_LIMIT = 2
    IO_ERROR = 3
    UNSUPPORTED = 4
    IMAGE_REPLACED = 5
    FILE_LIMIT = 6
    CONTINUED = 7

    @property
    def cause(self) -> str | None:
        """Description of the cause; None if logging did not stop."""
        return _CAUSES.get(self)

    @property
    def sentence(self) -> str:
        """The reason as a sentence."""
        return "Logging went on to the end." if self.cause is None else f"Logging stopped early: {self.cause}."


_CAUSES = {
    StopReason.DISK_FULL: "the disk was full",
    StopReason.SIZE_LIMIT: "the recording reached its size limit",
    StopReason.IO_ERROR: "the recording could not be written",
    StopReason.UNSUPPORTED: "the program did something that cannot be recorded",
    StopReason.IMAGE_REPLACED: "the program replaced its process image (exec)",
    StopReason.FILE_LIMIT: "the recording reached the limit of file sizes (ulimit -f)",
    StopReason.CONTINUED: "the program continued from a checkpoint, with a new log",
}
