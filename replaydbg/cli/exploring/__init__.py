"""Commands that answer questions about a recorded run, at a moment or over all of it."""
