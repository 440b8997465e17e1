"""Flaky programs, some of real packages: `hunt` catches each, and `bisect recordings` names what makes it fail."""
