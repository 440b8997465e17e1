"""Answers about several processes as text and as drawings."""
