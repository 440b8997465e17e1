"""Data frames of pandas: what changes with their cells."""
