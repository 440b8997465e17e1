"""Tests of replaydbg/cli."""
