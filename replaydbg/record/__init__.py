"""Recording: the launcher of a recorded program."""

from replaydbg.record.launcher import record
from replaydbg.record.result import RecordResult

__all__ = ["RecordResult", "record"]
