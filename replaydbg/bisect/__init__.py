"""Searching for the first bad one: pure algorithms over values and functions, without any effect of their own."""
