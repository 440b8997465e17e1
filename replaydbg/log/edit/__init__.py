"""Edits recordings: cuts one out of a running one, splices records out, mixes two, reorders lanes."""
