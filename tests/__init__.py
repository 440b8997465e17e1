"""The tests of replaydbg, and the long-running harnesses: `real`, `stdlib`, `stress`, `bench`."""
