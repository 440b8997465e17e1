"""Tests of replaydbg/bisect."""
