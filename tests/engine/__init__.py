"""Tests of replaydbg/engine."""
