"""Files that were compressed for an earlier recording."""
