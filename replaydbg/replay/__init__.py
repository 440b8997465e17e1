"""Replaying: the launcher of a replay, and its report of a divergence."""

from replaydbg.replay.launcher import replay
from replaydbg.replay.result import ReplayResult

__all__ = ["ReplayResult", "replay"]
