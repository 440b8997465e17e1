"""A recording as a test for pytest that needs nothing of replaydbg. Reading the recording executes nothing of it."""
