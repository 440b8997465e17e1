"""Shared by the long-running harnesses: running a command and its cost, the tool's command lines, reading figures."""
