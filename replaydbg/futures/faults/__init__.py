"""Faults of futures: one call fails in each, and a table says what came of it."""
