"""Searches for breakpoints, exceptions and changed values in both directions."""
