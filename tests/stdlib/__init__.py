"""CPython's own tests, plain and recorded: recording must not change a single result."""
