"""Tests of replaydbg/store."""
