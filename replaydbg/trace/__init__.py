"""The trace of a run, every tick and event of it: what it is, how its files are read, and how two of them compare."""
