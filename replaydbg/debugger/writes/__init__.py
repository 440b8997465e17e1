"""Writes of a value: the last one, equal ones, their origins and the history."""
