"""Completion of expressions: the queries that a copy of the program answers."""
