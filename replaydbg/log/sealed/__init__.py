"""Sealed files: their sections, and the blocks of which these consist."""
