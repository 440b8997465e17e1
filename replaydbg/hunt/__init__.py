"""Catch a flaky program: record it repeatedly until there is one run that fails and one that passes."""
