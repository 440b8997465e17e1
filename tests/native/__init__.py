"""Tests of replaydbg/native as source code."""
