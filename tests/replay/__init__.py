"""Tests of replaydbg/replay."""
