"""Scripts that run inside a copy of the program to answer questions; they are read as text and not imported."""
