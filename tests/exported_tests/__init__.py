"""Recordings as tests that need nothing of replaydbg."""
