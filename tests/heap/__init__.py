"""Tests of replaydbg/heap."""
