"""Tests of replaydbg/trace."""
