"""Replaying: the launcher of a replay, and what it says of a divergence."""

from replaydbg.replay.launcher import replay
from replaydbg.replay.result import ReplayResult

__all__ = ["ReplayResult", "replay"]
