"""The records of a log."""
