"""Flaky bugs that real packages had: `hunt` catches each, and `bisect recordings` finds what makes it come."""
