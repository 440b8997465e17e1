"""Tests of replaydbg/gates."""
