"""Snapshots as bytes: validate, compress and delta-code them, and find those of a recording."""
