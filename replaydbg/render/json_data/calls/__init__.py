"""Calls of functions as data: differences of two runs, and files for viewers of timelines."""
