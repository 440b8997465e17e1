"""Bisection of a run: the line after which a predicate is bad."""
