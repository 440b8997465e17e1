"""Recording: the launcher of a recorded program."""

from replaydbg.record.launcher import RecordResult, record

__all__ = ["RecordResult", "record"]
