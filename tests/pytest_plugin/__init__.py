"""Tests of replaydbg/pytest_plugin."""
