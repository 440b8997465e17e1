"""Does nothing: what is left is the start-up."""
