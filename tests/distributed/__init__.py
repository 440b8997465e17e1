"""Tests of replaydbg/distributed."""
