"""Moments beside what programs log: `replaydbg.moment` and `replaydbg.observe`, with the real libraries."""
