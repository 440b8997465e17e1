"""Groups of processes of which some, or all, are killed at random times."""
