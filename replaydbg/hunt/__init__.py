"""Catching a flaky program: recording it again and again until there is one run that fails and one that passes."""
