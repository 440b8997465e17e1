"""The trace of a run, with every tick and event: its format, reading its files, and comparing two of them."""
