"""Flaky programs, some of real packages:

`hunt` catches each, and `bisect recordings` names the cause of its failure.
"""
