"""Regressions of real packages, released versions as commits: bisected by a command and by one recording."""
