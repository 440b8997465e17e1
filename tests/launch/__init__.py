"""Tests of replaydbg/launch."""
