"""Programs that `tests.stress` records: much at once, and everything that depends on its order is printed."""
