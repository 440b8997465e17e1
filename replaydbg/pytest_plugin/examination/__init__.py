"""The process that examines kept recordings: makes them smaller, replays them, and finds who wrote their values."""
