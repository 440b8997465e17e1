"""Replaying: the launcher of a replay, and what it says of a divergence."""

from replaydbg.replay.launcher import ReplayResult, replay

__all__ = ["ReplayResult", "replay"]
