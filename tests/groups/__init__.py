"""Tests of replaydbg/groups, and of the commands that need it."""
