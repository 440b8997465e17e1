"""Searches over futures: which switch decides, all schedules with few preemptions, since when a failure was certain."""
