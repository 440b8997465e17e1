"""Tests of replaydbg/debugger."""
