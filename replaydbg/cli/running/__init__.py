"""Commands that run a program, or its replay, from beginning to end."""
