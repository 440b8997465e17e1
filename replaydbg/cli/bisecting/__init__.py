"""`replaydbg bisect`: search for the moment, the input or the commit that made a program fail."""
