"""Tests of replaydbg/log."""
