"""The difference between two snapshots, of one run or of two."""
