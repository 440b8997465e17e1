"""Which functions were called in a part of the run."""
