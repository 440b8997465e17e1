"""Texts about kept tests: the sections of reports, summaries, and the lists of all."""
