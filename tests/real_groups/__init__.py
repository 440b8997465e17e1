"""Real programs of several processes, recorded as groups."""
