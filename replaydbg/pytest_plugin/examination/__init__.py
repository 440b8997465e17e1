"""The process that examines one kept recording: makes it smaller, replays it, and finds who wrote its values."""
