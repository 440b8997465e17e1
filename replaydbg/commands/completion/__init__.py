"""Completion of the line that is typed at a prompt."""
