"""The tests of replaydbg, and the long-running harnesses: `tests.real`, `tests.stdlib`, `tests.bench`."""
