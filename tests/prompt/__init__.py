"""Tests of replaydbg/prompt."""
