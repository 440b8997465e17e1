"""Tests of replaydbg/record."""
