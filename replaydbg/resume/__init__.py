"""Resume a recorded program: replay it to its last event, or to another one, and let it run on from there."""
