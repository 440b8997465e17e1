"""Tests of replaydbg/commits."""
