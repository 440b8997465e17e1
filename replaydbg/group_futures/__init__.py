"""Futures of processes that were recorded together: all of them go on from one consistent cut, many times."""
