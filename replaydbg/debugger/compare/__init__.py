"""Differences between two sessions: values, thread switches and memory."""
