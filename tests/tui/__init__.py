"""Tests of replaydbg/tui."""
