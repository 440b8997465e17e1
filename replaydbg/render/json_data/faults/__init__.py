"""Faults of futures as JSON data."""
